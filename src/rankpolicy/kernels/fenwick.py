"""A Fenwick tree (Fenwick 1994): counts and sums over prefixes of ranks, updated and read in O(log ranks)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
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
