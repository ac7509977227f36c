"""The datasets of one run, which go together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankpolicy.data import RankingDataset


def read_alike(files: Mapping[str, Path], columns: Mapping[str, Any]) -> dict[str, RankingDataset]:
    """Datasets with the same number of features: a sparse file may omit the last ones. Named columns are matched by ``fit``.

    Parameters
    ----------
    files
        The file of each role, such as "train".
    columns
        What ``read_dataset`` is told about the columns.
    """
    from rankpolicy.data import read_dataset

    datasets = {role: read_dataset(path, **columns) for role, path in files.items()}
    width = max(dataset.num_features for dataset in datasets.values())
    return {
        role: dataset
        if dataset.num_features in (0, width) or dataset.feature_names is not None
        else read_dataset(files[role], num_features=width, on_disk=columns["on_disk"])
        for role, dataset in datasets.items()
    }


def check_ranked_alike(train: RankingDataset, other: RankingDataset, what: str) -> None:
    """Refuse data that a ranker fitted on the training data could not rank and measure, before any time is spent on the fit.

    Parameters
    ----------
    train
        The training data.
    other
        The data to measure the ranker on.
    what
        What the other data is, for the message.
    """
    from rankpolicy.data.dataset import check_has_labels
    from rankpolicy.rankers.inputs import check_kind_of_data, matched_features

    check_has_labels(other, what)
    check_kind_of_data(other, reads_texts=train.num_features == 0, what=what)
    if train.num_features:
        matched_features(other, train.num_features, train.feature_names, train.categories, what=what)
