"""Datasets and rankers that verbs read from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.data import RankingDataset
    from rankpolicy.rankers import Ranker


def load_ranker(path: Path) -> Ranker:
    """The ranker in a file; a file that holds something else, such as a click model, is refused."""
    from rankpolicy.loading import load

    loaded = load(path)
    from rankpolicy.rankers import Ranker  # not before: a file that is missing is reported without loading torch

    if not isinstance(loaded, Ranker):
        raise RankPolicyError(
            f"{path} must hold a ranker, as 'rankpolicy train' writes it; it holds a {type(loaded).__name__}."
        )
    return loaded


def read_alike(files: Mapping[str, Path | None], read: Callable[..., RankingDataset]) -> dict[str, RankingDataset]:
    """Datasets by role with the same number of features: a sparse file may omit the last ones. ``fit`` matches named columns."""
    paths = {role: path for role, path in files.items() if path is not None}
    datasets = {role: read(path) for role, path in paths.items()}
    width = max(dataset.num_features for dataset in datasets.values())
    return {
        role: dataset
        if dataset.num_features in (0, width) or dataset.feature_names is not None
        else read(paths[role], num_features=width)
        for role, dataset in datasets.items()
    }


def check_ranked_alike(train: RankingDataset, other: RankingDataset, what: str) -> None:
    """Refuse data that a ranker fitted on the training data could not rank and measure, before any time is spent on the fit."""
    from rankpolicy.data.dataset import check_has_labels
    from rankpolicy.rankers.inputs import check_kind_of_data, matched_features

    check_has_labels(other, what)
    check_kind_of_data(other, reads_texts=train.num_features == 0, what=what)
    if train.num_features:
        matched_features(other, train.num_features, train.feature_names, train.categories, what=what)
