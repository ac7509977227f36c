"""Sums over the active pairs of a pairwise hinge loss, in O(items * log items) per query.

A pair (i, j) with label_i > label_j is active while score_i - score_j < 1. Items sorted by score are swept once from each side; a Fenwick
tree over label ranks holds the items within the margin so far, so that "all active partners of item i" is one prefix sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.fenwick import clear, count_and_sum_below, enter, new_tree


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
        first, last = offsets[query], offsets[query + 1]
        n = last - first
        order = first + np.argsort(scores[first:last])
        num_ranks = label_ranks[first:last].max() + 1
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
