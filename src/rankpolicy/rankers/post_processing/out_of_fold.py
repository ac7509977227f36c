"""Relevances of training items from models that have not seen them, and the group of an item as a feature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.sparse import SparseFeatures, sparse_features
from rankpolicy.optional import require
from rankpolicy.rankers.base import Ranker

Floats = NDArray[np.float64]
_GROUP_FEATURE = "protected group is "  # followed by its name


def folds_of_rows(train: RankingDataset, num_folds: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """The fold of each item (items,): all items of a query are in one fold.

    Where most items occur in several queries (people drawn into many lists, as in German Credit), other queries would show a model the
    very items it is to predict. Then folds are over distinct items, told apart by their features. With one query they are too.
    """
    item = _distinct_rows(train.features_by_query)
    queries_of_item = np.unique(np.stack([item, train.query_numbers]), axis=1)[0]
    recurs = np.bincount(queries_of_item)[item] > 1
    unit = item if train.num_queries < 2 or recurs.mean() > 0.5 else train.query_numbers
    num_units = int(unit.max()) + 1
    return generator.permutation(np.arange(num_units) % min(num_folds, num_units))[unit]


def out_of_fold_scores(
    new_estimators: Callable[[], Sequence[Ranker]], train: RankingDataset, folds: NDArray[np.int64]
) -> Floats:
    """Scores (items, estimator) of each item by estimators fitted on the other folds; by those fitted on all data if there is one fold."""
    scores = np.empty((train.num_items, len(new_estimators())))
    for fold in range(int(folds.max()) + 1):
        held_out = folds == fold
        other_folds = train if held_out.all() else rows_of(train, np.flatnonzero(~held_out))
        held_out_items = rows_of(train, np.flatnonzero(held_out))
        for column, estimator in enumerate(new_estimators()):
            scores[held_out, column] = estimator.fit(other_folds, progress=False)._scores(held_out_items)
    return scores


def rows_of(dataset: RankingDataset, rows: NDArray[np.int64]) -> RankingDataset:
    """The dataset of some of its items; queries without any are gone."""
    sizes = np.bincount(dataset.query_numbers[rows], minlength=dataset.num_queries)
    return RankingDataset(
        features_by_query=dataset.features_by_query[rows],
        labels_by_query=dataset.labels_by_query[rows],
        query_offsets=np.concatenate([[0], np.cumsum(sizes[sizes > 0])]),
        query_ids=dataset.query_ids[sizes > 0],
        source_rows_by_query=dataset.source_rows_by_query[rows],
        groups_by_query=None if dataset.groups_by_query is None else dataset.groups_by_query[rows],
        feature_names=dataset.feature_names,
        label_kind=dataset.label_kind,
        categories=dataset.categories,
    )


def with_group_features(dataset: RankingDataset, names: Sequence[str]) -> RankingDataset:
    """The dataset with one more column per group: 1 for its members, else 0. An item without a group, or of another, has 0 in all."""
    groups = (
        np.full(dataset.num_items, "")
        if dataset.groups_by_query is None
        else np.asarray(dataset.groups_by_query).astype(str)
    )
    columns = (groups[:, None] == np.array(names)).astype(np.float32) * (dataset.groups_by_query is not None)
    features: Any = dataset.features_by_query
    if isinstance(features, SparseFeatures):
        features = sparse_features(require("scipy.sparse", "Sparse features").hstack([features.matrix, columns]))
    else:
        features = np.concatenate([features, columns], axis=1)
    feature_names = dataset.feature_names
    if feature_names is not None:
        feature_names = (*feature_names, *(f"{_GROUP_FEATURE}{name}" for name in names))
    return replace(dataset, features_by_query=features, feature_names=feature_names)


def stacking_weights(scores: Floats, labels: Floats) -> tuple[Floats, float]:
    """The weights a >= 0 (estimator,) and the intercept b with the least sum of (labels - scores @ a - b)².

    A negative weight would turn the order of an estimator round.

    >>> weights, intercept = stacking_weights(np.array([[1.0], [2.0], [3.0]]), np.array([3.0, 5.0, 7.0]))
    >>> weights.round(6).tolist(), round(intercept, 6)
    ([2.0], 1.0)
    """
    nnls = require("scipy.optimize", "Weights of several estimators of relevance").nnls
    centre, middle = scores.mean(0), float(labels.mean())
    weights: Floats = nnls(scores - centre, labels - middle)[0]
    return weights, middle - float(centre @ weights)


def _distinct_rows(features: Any) -> NDArray[np.int64]:
    """A number per row, the same for rows of equal features."""
    if isinstance(features, SparseFeatures):
        matrix = features.matrix
        row_slices = [slice(start, stop) for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)]
        keys = np.array(
            [blake2b(matrix.indices[row].tobytes() + matrix.data[row].tobytes()).hexdigest() for row in row_slices]
        )
    else:
        rows = np.ascontiguousarray(features)
        keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)
