"""Counts of equal rows and equal keys, ratios of counts, and rows divided among threads so that no two add to the same sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

NUM_BLOCKS = 16  # fixed, so that sums do not depend on how many threads there are
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first place of each distinct row of integers, and for every row the number of its distinct row.

    Rows are compared by a 64-bit hash. Where two different rows have the same hash, all rows are sorted column by column instead.

    >>> first, inverse = distinct_rows(np.array([[1, 2], [3, 4], [1, 2]]))
    >>> first[inverse].tolist()
    [0, 1, 0]
    """
    columns = np.ascontiguousarray(rows.T, np.int64)
    keys = np.zeros(len(rows), np.uint64)
    for column in columns.view(np.uint64):
        keys ^= column
        keys *= _MULTIPLIER
        keys ^= keys >> _SHIFT
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    representatives = first[inverse]
    if any((column[representatives] != column).any() for column in columns):
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, inverse


def weighted_counts(codes: NDArray[Any], weights: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """The sum of the weights of each code 0, 1, ..., size - 1; codes and weights have the same shape.

    >>> weighted_counts(np.array([[0, 2], [2, 0]]), np.array([[1.0, 2.0], [3.0, 4.0]]), 3)
    array([5., 0., 5.])
    """
    return np.asarray(np.bincount(codes.ravel(), weights.ravel(), size), np.float64)


def counted_keys(
    keys: NDArray[np.int64], weights: NDArray[np.float64], bound: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Distinct keys in ascending order and the sum of the weights of each; keys lie in [0, bound) and weights are above 0.

    >>> counted_keys(np.array([5, 2, 5]), np.array([1.0, 1.0, 3.0]), 6)
    (array([2, 5]), array([1., 4.]))
    """
    if bound <= 4 * len(keys) + 1024:
        totals = weighted_counts(keys, weights, bound)
        distinct_keys = np.flatnonzero(totals)
        return distinct_keys, totals[distinct_keys]
    distinct_keys, inverse = np.unique(keys, return_inverse=True)
    return distinct_keys, weighted_counts(inverse, weights, len(distinct_keys))


def ratio(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quotient, 0 where the denominator is 0: such an event cannot happen, and nothing follows from it."""
    return np.divide(numerator, denominator, out=np.zeros(np.shape(denominator)), where=denominator != 0)


def cut_at_changes(owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where to cut rows, sorted by owner, into at most NUM_BLOCKS blocks of about equal size (block + 1,); no owner is divided.

    >>> cut_at_changes(np.array([4, 4, 4, 7])).tolist()
    [0, 3, 4]
    """
    changes = np.append(np.flatnonzero(np.diff(owners)) + 1, len(owners))
    even = len(owners) * np.arange(1, NUM_BLOCKS + 1) // NUM_BLOCKS
    return np.unique(np.append(0, changes[np.searchsorted(changes, even)]))
