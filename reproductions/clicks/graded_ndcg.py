"""NDCG of items by a score that leaves many of them equal: the mean over all orders of equal items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SAME = 1e-12  # scores nearer to each other than this are equal


class GradedQuery(NamedTuple):
    """The items of a query by their places among all pairs, and their gains 2^grade - 1."""

    pairs: NDArray[np.intp]
    gains: NDArray[np.float64]


def graded_queries(
    queries: NDArray[np.int32], grades: NDArray[np.float64], clicks: NDArray[np.float64]
) -> dict[int, GradedQuery]:
    """The queries with a click and at least two different grades, by their number; items without a grade are left out.

    Parameters
    ----------
    queries, grades, clicks
        Of each pair (pair,): its query, its grade or NaN, and its clicks.
    """
    found = {}
    for query in np.unique(queries):
        pairs = np.flatnonzero((queries == query) & ~np.isnan(grades))
        if clicks[queries == query].sum() > 0 and len(np.unique(grades[pairs])) > 1:
            found[int(query)] = GradedQuery(pairs, 2.0 ** grades[pairs] - 1)
    return found


def mean_ndcg(
    scores: NDArray[np.float64], queries: Mapping[int, GradedQuery], *, cutoff: int | None = None
) -> NDArray[np.float64]:
    """Expected NDCG of each query (query,) with equal scores in random order.

    Parameters
    ----------
    scores
        Of each pair (pair,), higher is better.
    queries
        The queries.
    cutoff
        Ranks that count; None: all.
    """
    return np.array([expected_ndcg(scores[query.pairs], query.gains, cutoff=cutoff) for query in queries.values()])


def expected_ndcg(scores: NDArray[np.float64], gains: NDArray[np.float64], *, cutoff: int | None = None) -> float:
    """DCG over the highest DCG, where equal scores share the mean gain of their ranks.

    >>> a_tie = expected_ndcg(np.array([0.0, 0.0]), np.array([1.0, 0.0]))
    >>> bool(np.isclose(a_tie, (1 + 1 / np.log2(3)) / 2))
    True
    """
    discounts = 1 / np.log2(np.arange(2, len(gains) + 2))
    discounts[len(gains) if cutoff is None else cutoff :] = 0.0
    order = np.argsort(-scores, kind="stable")
    is_first = np.append(True, np.abs(np.diff(scores[order])) > SAME)
    block = np.cumsum(is_first) - 1
    shared = (np.bincount(block, gains[order]) / np.bincount(block))[block]
    return float(shared @ discounts / (np.sort(gains)[::-1] @ discounts))


def concordance(
    scores: NDArray[np.float64], queries: Mapping[int, GradedQuery], ranks: NDArray[np.float64], *, nearer_than: float
) -> NDArray[np.float64]:
    """Share of the pairs of items whose better grade has the higher score (query,); a tie is half a pair.

    Only pairs of different grades whose mean ranks differ by less than ``nearer_than`` count; NaN for a query without any.

    Parameters
    ----------
    scores, ranks
        Of each pair (pair,): its score, higher is better, and its mean rank.
    queries
        The queries.
    nearer_than
        The largest difference of mean ranks, not included.
    """
    found = np.full(len(queries), np.nan)
    for place, (pairs, gains) in enumerate(queries.values()):
        better, worse = np.nonzero(
            (gains[:, None] > gains) & (np.abs(ranks[pairs][:, None] - ranks[pairs]) < nearer_than)
        )
        if len(better):
            gaps = scores[pairs][better] - scores[pairs][worse]
            found[place] = np.mean(np.where(np.abs(gaps) <= SAME, 0.5, gaps > 0))
    return found
