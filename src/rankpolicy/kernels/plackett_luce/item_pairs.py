"""Individual disparity and its gradient in O(n log n) per query, threads over queries; fairness/disparity.py specifies them.

Items enter a Fenwick tree over the ranks of x = exposure / merit, by ascending merit and all of one merit at once. Then

    below_i = #{j : M_j <= M_i, x_j < x_i} and the sum of their x  are prefixes of the tree after i's merit has entered,
    above_i = #{j : M_j >= M_i, x_j > x_i} = #{j : x_j > x_i} - #{j : M_j < M_i, x_j > x_i}  needs the count before it has entered,

so one pass gives the value, sum_i (below_i x_i - sum of x below), and the gradient, (below_i - above_i) / M_i.

Sums over the active pairs of a pairwise hinge loss, in O(items * log items) per query.

A pair (i, j) with label_i > label_j is active while score_i - score_j < 1. Items sorted by score are swept once from each side; a Fenwick
tree over label ranks holds the items within the margin so far, so that "all active partners of item i" is one prefix sum.

A Fenwick tree (Fenwick 1994): counts and sums over prefixes of ranks, updated and read in O(log ranks).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit


class FenwickTree(NamedTuple):
    """Numbers that entered at ranks 0, 1, ...; made by ``new_tree``."""

    counts: NDArray[np.int64]  # (rank + 1,)
    sums: NDArray[np.float64]  # (rank + 1,)


@njit()
def new_tree(num_ranks):
    """An empty tree over ranks 0 to num_ranks - 1."""
    return FenwickTree(np.zeros(num_ranks + 1, np.int64), np.zeros(num_ranks + 1))


@njit()
def clear(tree):
    """Empty the tree."""
    tree.counts[:] = 0
    tree.sums[:] = 0.0


@njit()
def enter(tree, rank, value):
    """Let a number enter at a rank."""
    node = rank + 1
    while node < len(tree.counts):
        tree.counts[node] += 1
        tree.sums[node] += value
        node += node & -node


@njit()
def count_below(tree, rank):
    """How many numbers entered at ranks below this one."""
    count = 0
    while rank > 0:
        count += tree.counts[rank]
        rank -= rank & -rank
    return count


@njit()
def count_and_sum_below(tree, rank):
    """How many numbers entered at ranks below this one, and their sum."""
    count, total = 0, 0.0
    while rank > 0:
        count += tree.counts[rank]
        total += tree.sums[rank]
        rank -= rank & -rank
    return count, total


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


def active_pairs(
    scores: NDArray[Any], values: NDArray[Any], label_ranks: NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """For each item (items,): active pairs it should win, active pairs it should lose, and the sum of ``values`` over its partners.

    ``label_ranks`` (items,) are labels as whole numbers 0, 1, 2, ... in the same order; ``offsets`` (queries + 1,).
    """
    wins, losses = np.zeros(len(scores), np.int64), np.zeros(len(scores), np.int64)
    partner_sums = np.zeros(len(scores))
    _active_pairs(
        scores,
        values,
        label_ranks,
        offsets,
        wins,
        losses,
        partner_sums,
        num_tasks=len(offsets) - 1,
        nanoseconds=200 * scores.size,
    )
    return wins, losses, partner_sums


@njit(parallel=True, nogil=True)
def _active_pairs(scores, values, label_ranks, offsets, wins, losses, partner_sums):
    for query in prange(len(offsets) - 1):
        items = slice(offsets[query], offsets[query + 1])
        _add_pairs(scores[items], values[items], label_ranks[items], wins[items], losses[items], partner_sums[items])


# A function of its own: in the body of a prange loop numba may drop `enter`, whose result nobody reads.
@njit(nogil=True)
def _add_pairs(scores, values, label_ranks, wins, losses, partner_sums):
    n = len(scores)
    order = np.argsort(scores)
    num_ranks = label_ranks.max() + 1
    tree = new_tree(num_ranks)
    # From the highest score down: partners that should be lower, yet score more than i - 1.
    entering = n - 1
    for position in range(n - 1, -1, -1):
        i = order[position]
        while entering >= 0 and scores[order[entering]] > scores[i] - 1:
            j = order[entering]
            enter(tree, label_ranks[j], values[j])
            entering -= 1
        count, total = count_and_sum_below(tree, label_ranks[i])
        wins[i] += count
        partner_sums[i] += total
    clear(tree)
    # From the lowest score up: partners that should be higher, yet score less than i + 1. Ranks count from the other end.
    entering = 0
    for position in range(n):
        i = order[position]
        while entering < n and scores[order[entering]] - 1 < scores[i]:
            j = order[entering]
            enter(tree, num_ranks - 1 - label_ranks[j], values[j])
            entering += 1
        count, total = count_and_sum_below(tree, num_ranks - 1 - label_ranks[i])
        losses[i] += count
        partner_sums[i] += total
