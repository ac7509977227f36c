"""Queries of similar length together, so that padding them costs no more than a multiple of their items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SHORT = 16  # lists up to this length are padded together


def queries_by_length(sizes: NDArray[np.int64], *, most_cells: int | None = None) -> list[NDArray[np.int64]]:
    """Indices of queries in groups, in each of which the longest list is at most twice the shortest (or short itself).

    >>> [group.tolist() for group in queries_by_length(np.array([3, 8000, 10, 40]))]
    [[0, 2], [3], [1]]
    """
    classes = np.ceil(np.log2(np.maximum(sizes, _SHORT) / _SHORT)).astype(np.int64)
    groups = []
    for length_class in np.unique(classes):
        queries = np.flatnonzero(classes == length_class)
        count = len(queries) if most_cells is None else max(1, most_cells // int(sizes[queries].max()))
        groups += [queries[start : start + count] for start in range(0, len(queries), count)]
    return groups
