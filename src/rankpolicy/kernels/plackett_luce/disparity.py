"""Individual disparity and its gradient in O(n log n) per query, threads over queries; fairness/individual_disparity.py specifies them.

Items enter a Fenwick tree over the ranks of x = exposure / merit, by ascending merit and all of one merit at once. Then

    below_i = #{j : M_j <= M_i, x_j < x_i} and the sum of their x  are prefixes of the tree after i's merit has entered,
    above_i = #{j : M_j >= M_i, x_j > x_i} = #{j : x_j > x_i} - #{j : M_j < M_i, x_j > x_i}  needs the count before it has entered,

so one pass gives the value, sum_i (below_i x_i - sum of x below), and the gradient, (below_i - above_i) / M_i.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.fenwick import count_and_sum_below, count_below, enter, new_tree


def individual_disparities(
    exposure: NDArray[Any], merit: NDArray[Any], mask: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values (query,) and gradients (query, item) in float64; 0 where fewer than two items have merit."""
    values, gradient = np.zeros(len(exposure)), np.zeros(exposure.shape)
    _disparities(exposure, merit, mask, values, gradient, num_tasks=len(exposure), nanoseconds=200 * exposure.size)
    return values, gradient


@njit(parallel=True, nogil=True)
def _disparities(exposure, merit, mask, values, gradient):
    for query in prange(len(exposure)):
        values[query] = _of_query(exposure[query], merit[query], mask[query], gradient[query])


@njit()
def _of_query(exposure, merit, mask, gradient):
    items = np.flatnonzero(mask & (merit > 0))
    n = len(items)
    if n < 2:
        return 0.0
    merits, treatments = np.empty(n), np.empty(n)
    for i in range(n):
        merits[i] = merit[items[i]]
        treatments[i] = exposure[items[i]] / merit[items[i]]
    ranks, num_above = np.empty(n, np.int64), np.empty(n, np.int64)
    _rank(treatments, ranks, num_above)
    by_merit = np.argsort(merits)
    tree = new_tree(n)
    above = np.empty(n, np.int64)
    total, num_pairs = 0.0, 0
    start = 0
    while start < n:
        end = start
        while end < n and merits[by_merit[end]] == merits[by_merit[start]]:
            i = by_merit[end]
            above[i] = num_above[i] - (start - count_below(tree, ranks[i] + 1))
            end += 1
        for k in range(start, end):
            enter(tree, ranks[by_merit[k]], treatments[by_merit[k]])
        for k in range(start, end):
            i = by_merit[k]
            below, sum_below = count_and_sum_below(tree, ranks[i])
            total += below * treatments[i] - sum_below
            gradient[items[i]] = (below - above[i]) / merits[i]
        num_pairs += (end - start) * (end - 1)
        start = end
    for i in range(n):
        gradient[items[i]] /= num_pairs
    return total / num_pairs


@njit()
def _rank(values, ranks, num_above):
    """Ranks 0, 1, ... by ascending value, one rank for equal values, and how many values are higher."""
    order = np.argsort(values)
    n = len(values)
    start, rank = 0, -1
    while start < n:
        end, rank = start, rank + 1
        while end < n and values[order[end]] == values[order[start]]:
            ranks[order[end]] = rank
            end += 1
        for k in range(start, end):
            num_above[order[k]] = n - end
        start = end
