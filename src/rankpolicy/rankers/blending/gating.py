"""Which features networks of a blend read: those that split trees better than noise would.

A network spends capacity on every feature it reads; trees ignore those that do not help. Where few of many features matter, networks that
read only these rank far better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.sparse import SparseFeatures

if TYPE_CHECKING:
    from rankpolicy.rankers.trees.boosting import TreeRanker

Columns = NDArray[np.int64]
_ENOUGH_ITEMS, _ENOUGH_TREES = 50_000, 30  # to tell features that matter from noise


def read_columns(dataset: RankingDataset, columns: Columns | None) -> RankingDataset:
    """The dataset with some of its features (columns of the matrix, ascending) only; None: all of them."""
    if columns is None:
        return dataset
    features: Any = dataset.features_by_query
    chosen = features[:, columns]
    if isinstance(chosen, np.ndarray):
        chosen = np.ascontiguousarray(chosen)
    names = None if dataset.feature_names is None else tuple(dataset.feature_names[column] for column in columns)
    categories = {name: values for name, values in (dataset.categories or {}).items() if name in (names or ())}
    return replace(dataset, features_by_query=chosen, feature_names=names, categories=categories or None)


def features_that_matter(
    train: RankingDataset,
    valid: RankingDataset | None,
    trees: TreeRanker,
    *,
    stop: Callable[[], bool] | None = None,
) -> Columns | None:
    """The features that gain more in boosted trees than any feature does whose values were shuffled over all items (Kursa & Rudnicki 2010).

    Every feature is given to the trees a second time, in the order of another item: as a shuffled feature says nothing about labels,
    what its splits gain is chance. None where all features matter, or none does.
    """
    num_grown, is_stopped = 0, False

    def count(progress: Any) -> bool:
        nonlocal num_grown, is_stopped
        num_grown, is_stopped = num_grown + 1, stop is not None and stop()
        return is_stopped

    seed = trees.random_state
    trees.fit(
        with_shuffled_features(_enough_of(train, seed), seed),
        valid=None if valid is None else with_shuffled_features(_enough_of(valid, seed), seed),
        callbacks=[count],
        progress=False,
    )
    if is_stopped and num_grown < _ENOUGH_TREES:
        return None
    gains = np.asarray(trees._booster.feature_importance("gain", iteration=trees.best_iteration_), np.float64)
    gains_of_features, by_chance = np.split(gains, 2)
    columns = np.flatnonzero(gains_of_features > by_chance.max())
    return columns if 0 < len(columns) < train.num_features else None


def with_shuffled_features(dataset: RankingDataset, random_state: int | None) -> RankingDataset:
    """The dataset with twice as many features: its own, then those of another item, the same for all features."""
    features: Any = dataset.features_by_query
    order = np.random.default_rng(random_state).permutation(dataset.num_items)
    joined: Any = joined_columns(features, features[order])
    names = tuple(str(column) for column in range(2 * dataset.num_features))
    categories = {
        names[place + shift]: values
        for place, name in enumerate(dataset.feature_names or ())
        for shift in (0, dataset.num_features)
        if (values := (dataset.categories or {}).get(name)) is not None
    }
    return replace(dataset, features_by_query=joined, feature_names=names, categories=categories or None)


def joined_columns(first: Any, second: Any) -> Any:
    """The columns of two matrices side by side; sparse where they are."""
    if not isinstance(first, SparseFeatures):
        return np.hstack([first, second])
    from scipy.sparse import hstack

    return SparseFeatures(hstack([first.matrix, second.matrix], format="csr"))


def _enough_of(dataset: RankingDataset, random_state: int | None) -> RankingDataset:
    """The dataset, or of much data as many queries as have about ``_ENOUGH_ITEMS`` items."""
    if dataset.num_items <= _ENOUGH_ITEMS:
        return dataset
    count = int(np.ceil(dataset.num_queries * _ENOUGH_ITEMS / dataset.num_items))
    return dataset[np.sort(np.random.default_rng(random_state).permutation(dataset.num_queries)[:count])]
