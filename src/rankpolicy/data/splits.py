"""Parts of a dataset that share no query: what is learned on some queries is measured on others."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.dataset import RankingDataset, numbered_by_appearance
from rankpolicy.types import RankPolicyError


def split_queries(
    dataset: RankingDataset, fractions: Sequence[float] = (0.6, 0.2, 0.2), *, random_state: int | None = 0
) -> list[RankingDataset]:
    """Random parts that hold these fractions of the queries; every query is in exactly one part.

    >>> from rankpolicy.data.dataset import from_arrays
    >>> [part.num_queries for part in split_queries(from_arrays(np.zeros((10, 1)), group=[1] * 10))]
    [6, 2, 2]
    """
    cuts = _cuts(dataset, fractions)
    shuffled = np.random.default_rng(random_state).permutation(dataset.num_queries)
    return [dataset[np.sort(queries)] for queries in np.split(shuffled, cuts)]


def split_by_time(dataset: RankingDataset, fractions: Sequence[float] = (0.8, 0.1, 0.1)) -> list[RankingDataset]:
    """Parts that follow one another in time, the oldest first, and hold about these fractions of the queries.

    What is learned from the past is measured on what came after. Queries of the same time stay in one part: a cut moves to the nearest
    place between two times. Only where there are fewer times than parts are they cut apart, as the dataset has them, with a warning.

    >>> from dataclasses import replace
    >>> from rankpolicy.data.dataset import from_arrays
    >>> from rankpolicy.data.click_table.shown import Shown
    >>> dataset = replace(from_arrays(np.zeros((5, 1)), group=[1] * 5), shown=Shown(times=np.array([3.0, 1.0, 2.0, 2.0, 9.0])))
    >>> [part.shown.times.tolist() for part in split_by_time(dataset, (0.4, 0.4, 0.2))]
    [[1.0], [2.0, 2.0, 3.0], [9.0]]
    """
    times = None if dataset.shown is None else dataset.shown.times
    if times is None:
        raise RankPolicyError(
            "a split by time needs the time of each query; the dataset has none. Add a timestamp column to the click table, "
            "or split at random: split_queries."
        )
    cuts = _cuts(dataset, fractions)
    order = np.argsort(times, kind="stable")
    between = 1 + np.flatnonzero(np.diff(times[order]))  # where a cut parts two times
    if len(between) < len(cuts):
        warnings.warn(
            f"the queries have {len(between) + 1} different times, fewer than the {len(cuts) + 1} parts: "
            "queries of one time are in several parts.",
            stacklevel=2,
        )
    else:
        lowest = 0
        for part, cut in enumerate(cuts):
            possible = between[lowest : len(between) - (len(cuts) - part - 1)]
            lowest += int(np.argmin(np.abs(possible - cut)))
            cuts[part] = between[lowest]
            lowest += 1
    return [dataset[queries] for queries in np.split(order, cuts)]


def k_fold(
    dataset: RankingDataset, num_folds: int = 5, *, random_state: int | None = 0
) -> Iterator[tuple[RankingDataset, RankingDataset]]:
    """Pairs (train, test) such that every query is tested once."""
    fold_of_query = _folds(dataset.num_queries, num_folds, np.random.default_rng(random_state))
    return ((dataset[fold_of_query != fold], dataset[fold_of_query == fold]) for fold in range(num_folds))


class QueryKFold:
    """A splitter for scikit-learn that keeps the rows of a query together: ``groups`` is the query id of each row.

    >>> [test.tolist() for _, test in QueryKFold(2).split(np.zeros((4, 1)), groups=["a", "b", "a", "b"])]
    [[0, 2], [1, 3]]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: int | None = None) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def __repr__(self) -> str:
        return f"QueryKFold(n_splits={self.n_splits}, shuffle={self.shuffle}, random_state={self.random_state})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Row numbers (train, test) of each fold."""
        if groups is None:
            raise RankPolicyError(
                "groups must be the query id of each row; got none. Pass groups=qid, for example to cross_val_score."
            )
        query_ids = np.asarray(groups)
        query_of_row, names = numbered_by_appearance(query_ids, len(query_ids))
        generator = np.random.default_rng(self.random_state) if self.shuffle else None
        fold_of_row = _folds(len(names), self.n_splits, generator)[query_of_row]
        for fold in range(self.n_splits):
            yield np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold)


def _cuts(dataset: RankingDataset, fractions: Sequence[float]) -> NDArray[np.int64]:
    """Where each part but the first starts among the queries; every part has at least one."""
    shares = np.asarray(fractions, dtype=float)
    if shares.ndim != 1 or not (shares > 0).all() or not np.isclose(shares.sum(), 1):
        raise RankPolicyError(
            f"fractions must be positive and add up to 1; got {tuple(fractions)}, sum {shares.sum():g}."
        )
    if len(shares) > dataset.num_queries:
        raise RankPolicyError(
            f"each of the {len(shares)} parts needs a query; the dataset has {dataset.num_queries}. Ask for fewer."
        )
    cuts = np.round(np.cumsum(shares)[:-1] * dataset.num_queries).astype(int)
    # Small shares of few queries round to nothing.
    for part in range(len(cuts)):
        cuts[part] = max(cuts[part], 1 + (cuts[part - 1] if part else 0))
        cuts[part] = min(cuts[part], dataset.num_queries - (len(cuts) - part))
    return cuts


def _folds(num_queries: int, num_folds: int, generator: np.random.Generator | None) -> NDArray[np.int64]:
    """The fold of each query (queries,): blocks of nearly equal size, shuffled where a generator is given."""
    if not 2 <= num_folds <= num_queries:
        raise RankPolicyError(
            f"the number of folds must be 2 or more and at most the number of queries, {num_queries}; got {num_folds}."
        )
    folds = np.arange(num_queries) * num_folds // num_queries
    return folds if generator is None else generator.permutation(folds)
