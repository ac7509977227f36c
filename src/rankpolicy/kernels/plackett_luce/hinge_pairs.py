"""Sums over the pairs of a query that a pairwise hinge still sees, in O(items * log items) a query.

A pair (i, j) with label_i > label_j is active while score_i - score_j < 1. Items sorted by score are swept once from each side; a Fenwick
tree over label ranks holds what is within the margin so far, so that "all active partners of item i" is one prefix sum.
"""

import numpy as np
from numba import prange

from rankpolicy.kernels.compile import njit


def active_pairs(scores, values, label_ranks, offsets):
    """Of each item (items,): active pairs it should win, active pairs it should lose, and the sum of ``values`` over its partners in both.

    ``label_ranks`` (items,) are labels as whole numbers 0, 1, 2, ... in the same order; ``offsets`` (queries + 1,).
    """
    wins, losses = np.zeros(len(scores), np.int64), np.zeros(len(scores), np.int64)
    partner_sums = np.zeros(len(scores))
    _active_pairs(scores, values, label_ranks, offsets, wins, losses, partner_sums)
    return wins, losses, partner_sums


@njit(parallel=True)
def _active_pairs(scores, values, label_ranks, offsets, wins, losses, partner_sums):
    for query in prange(len(offsets) - 1):
        first, last = offsets[query], offsets[query + 1]
        n = last - first
        order = first + np.argsort(scores[first:last])
        num_ranks = label_ranks[first:last].max() + 1
        counts, sums = np.zeros(num_ranks + 1, np.int64), np.zeros(num_ranks + 1)
        # From the highest score down: partners that should be lower, yet score more than i - 1.
        entering = n - 1
        for position in range(n - 1, -1, -1):
            i = order[position]
            while entering >= 0 and scores[order[entering]] > scores[i] - 1:
                j = order[entering]
                _add(counts, sums, label_ranks[j], values[j])
                entering -= 1
            count, total = _prefix(counts, sums, label_ranks[i])
            wins[i] += count
            partner_sums[i] += total
        counts[:] = 0
        sums[:] = 0
        # From the lowest score up: partners that should be higher, yet score less than i + 1. Ranks count from the other end.
        entering = 0
        for position in range(n):
            i = order[position]
            while entering < n and scores[order[entering]] - 1 < scores[i]:
                j = order[entering]
                _add(counts, sums, num_ranks - 1 - label_ranks[j], values[j])
                entering += 1
            count, total = _prefix(counts, sums, num_ranks - 1 - label_ranks[i])
            losses[i] += count
            partner_sums[i] += total


@njit()
def _add(counts, sums, rank, value):
    node = rank + 1
    while node < len(counts):
        counts[node] += 1
        sums[node] += value
        node += node & -node


@njit()
def _prefix(counts, sums, rank):
    """Count and sum over ranks below this one."""
    count, total = 0, 0.0
    node = rank
    while node > 0:
        count += counts[node]
        total += sums[node]
        node -= node & -node
    return count, total
