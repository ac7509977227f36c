"""Splits of a dataset into parts that share no query, at random, by time, or into folds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.arrays import numbered_by_appearance
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import as_array, as_float64, checked_kinds, seeded
from rankpolicy.types import RankPolicyError


@checked_kinds
def split_queries(
    dataset: RankingDataset, fractions: Sequence[float] = (0.6, 0.2, 0.2), *, random_state: int | None = 0
) -> list[RankingDataset]:
    """Split a dataset at random into parts; every query is in exactly one part.

    Parameters
    ----------
    dataset
        The dataset to split.
    fractions
        Share of the queries of each part; they add up to 1.
    random_state
        Seed of the random choice; None draws a new one each time.

    >>> from rankpolicy.data.arrays import from_arrays
    >>> [part.num_queries for part in split_queries(from_arrays(np.zeros((10, 1)), group=[1] * 10))]
    [6, 2, 2]
    """
    cuts = _cuts(dataset, fractions)
    shuffled = seeded(random_state).permutation(dataset.num_queries)
    return [dataset[np.sort(queries)] for queries in np.split(shuffled, cuts)]


@checked_kinds
def split_by_time(dataset: RankingDataset, fractions: Sequence[float] = (0.8, 0.1, 0.1)) -> list[RankingDataset]:
    """Split a dataset by time, oldest queries first, so that what is learned from the past is measured on later queries.

    Queries of the same time stay in one part: a cut moves to the nearest place between two times. If there are fewer times than parts,
    queries of the same time are separated in the order of the dataset, with a warning.

    Parameters
    ----------
    dataset
        The dataset to split; it must know the time of each query.
    fractions
        Approximate share of the queries of each part; they add up to 1.

    >>> from dataclasses import replace
    >>> from rankpolicy.data.arrays import from_arrays
    >>> from rankpolicy.data.click_table.list_columns import Shown
    >>> dataset = replace(from_arrays(np.zeros((5, 1)), group=[1] * 5), shown_by_query=Shown(times=np.array([3.0, 1.0, 2.0, 2.0, 9.0])))
    >>> [part.shown.times.tolist() for part in split_by_time(dataset, (0.4, 0.4, 0.2))]
    [[1.0], [2.0, 2.0, 3.0], [9.0]]
    """
    times = None if dataset.shown_by_query is None else dataset.shown_by_query.times
    if times is None:
        raise RankPolicyError(
            "a split by time needs the time of each query; the dataset has none. Add a timestamp column to the click table, "
            "or split at random: split_queries."
        )
    cuts = _cuts(dataset, fractions)
    order = np.argsort(times, kind="stable")
    between = 1 + np.flatnonzero(np.diff(times[order]))  # positions between two different times
    if len(between) < len(cuts):
        warnings.warn(
            f"the queries have {len(between) + 1} different times, fewer than the {len(cuts) + 1} parts: "
            "queries of one time are in several parts.",
            stacklevel=2,
        )
    else:
        lowest = 0
        for index, cut in enumerate(cuts):
            possible = between[lowest : len(between) - (len(cuts) - index - 1)]
            lowest += int(np.argmin(np.abs(possible - cut)))
            cuts[index] = between[lowest]
            lowest += 1
    return [dataset[queries] for queries in np.split(order, cuts)]


@checked_kinds
def k_fold(
    dataset: RankingDataset, num_folds: int = 5, *, random_state: int | None = 0
) -> Iterator[tuple[RankingDataset, RankingDataset]]:
    """Pairs (train, test) of a cross-validation: every query is in one test part.

    Parameters
    ----------
    dataset
        The dataset to split.
    num_folds
        Number of folds.
    random_state
        Seed of the random assignment of queries to folds; None draws a new one each time.
    """
    fold_of_query = _folds(dataset.num_queries, num_folds, seeded(random_state))
    return ((dataset[fold_of_query != fold], dataset[fold_of_query == fold]) for fold in range(num_folds))


class QueryKFold:
    """A cross-validation splitter for scikit-learn that keeps the rows of a query together.

    Parameters
    ----------
    n_splits
        Number of folds.
    shuffle
        Assign queries to folds at random instead of in order.
    random_state
        Seed of the shuffling; None draws a new one each time.

    >>> [test.tolist() for _, test in QueryKFold(2).split(np.zeros((4, 1)), groups=["a", "b", "a", "b"])]
    [[0, 2], [1, 3]]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: int | None = None) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def __repr__(self) -> str:
        return f"QueryKFold(n_splits={self.n_splits}, shuffle={self.shuffle}, random_state={self.random_state})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, qid: Any = None) -> int:
        """Number of folds.

        Parameters
        ----------
        X, y, groups, qid
            Ignored; part of scikit-learn's protocol.
        """
        return self.n_splits

    def get_metadata_routing(self) -> Any:
        """Which arguments of ``split`` scikit-learn's searches pass on (its protocol): ``qid`` and ``groups``."""
        from sklearn.utils.metadata_routing import MetadataRequest

        routing = MetadataRequest(owner=type(self).__name__)
        for name in ("qid", "groups"):
            routing.split.add_request(param=name, alias=True)
        return routing

    def split(
        self, X: Any, y: Any = None, groups: ArrayLike | None = None, *, qid: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Row numbers (train, test) of each fold.

        Parameters
        ----------
        X, y
            Ignored; part of scikit-learn's protocol.
        groups
            The query id of each row, under scikit-learn's own name.
        qid
            The query id of each row, under the name that rankers use; metadata routing passes it on.
        """
        if groups is None and qid is None:
            raise RankPolicyError(
                "qid or groups must be the query id of each row; got none. For rankers call "
                "sklearn.set_config(enable_metadata_routing=True) and pass qid to the search or to cross_val_score(params={'qid': qid}); "
                "for other estimators pass groups=qid."
            )
        query_ids = as_array("groups" if qid is None else "qid", groups if qid is None else qid)
        if query_ids.ndim != 1:
            raise RankPolicyError(f"qid must be the query id of each row, shape (row,); got {query_ids.shape}.")
        query_of_row, names = numbered_by_appearance(query_ids, len(query_ids))
        generator = seeded(self.random_state) if self.shuffle else None
        fold_of_row = _folds(len(names), self.n_splits, generator)[query_of_row]
        for fold in range(self.n_splits):
            yield np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold)


def _cuts(dataset: RankingDataset, fractions: Sequence[float]) -> NDArray[np.int64]:
    """Index of the first query of every part but the first; every part has at least one query."""
    shares = as_float64("fractions", fractions)
    if shares.ndim != 1 or not (shares > 0).all() or not np.isclose(shares.sum(), 1):
        raise RankPolicyError(
            f"fractions must be positive and add up to 1; got {tuple(fractions)}, sum {shares.sum():g}."
        )
    if len(shares) > dataset.num_queries:
        raise RankPolicyError(
            f"each of the {len(shares)} parts needs a query; the dataset has {dataset.num_queries}. Ask for fewer."
        )
    cuts = np.round(np.cumsum(shares)[:-1] * dataset.num_queries).astype(int)
    # A small share of few queries may round to 0.
    for index in range(len(cuts)):
        cuts[index] = max(cuts[index], 1 + (cuts[index - 1] if index else 0))
        cuts[index] = min(cuts[index], dataset.num_queries - (len(cuts) - index))
    return cuts


def _folds(num_queries: int, num_folds: int, generator: np.random.Generator | None) -> NDArray[np.int64]:
    """The fold of each query (queries,): blocks of nearly equal size, shuffled if there is a generator."""
    if not 2 <= num_folds <= num_queries:
        raise RankPolicyError(
            f"the number of folds must be 2 or more and at most the number of queries, {num_queries}; got {num_folds}."
        )
    folds = np.arange(num_queries) * num_folds // num_queries
    return folds if generator is None else generator.permutation(folds)
