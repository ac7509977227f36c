"""Conversion between flat arrays of items and padded arrays of queries.

Features stay flat; only scalars (scores, labels, groups) are padded to ``(query, item)`` with a mask. Queries of similar length are
padded together, so that padding costs no more than a multiple of their items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arrays import Array, alike, is_tensor
from rankpolicy.display import short_repr

_SHORT = 16  # lists up to this length are padded together


@dataclass(frozen=True, slots=True)
class Padding:
    """The place of each flat item in a padded ``(query, item)`` array; arrays are padded as arrays, tensors as tensors.

    >>> padding = Padding.of_sizes(np.array([2, 1]))
    >>> padding.pad(np.array([5.0, 6.0, 7.0]))
    array([[5., 6.],
           [7., 0.]])
    >>> padding.unpad(padding.mask).tolist()
    [True, True, True]
    """

    mask: Array  # (query, item) bool
    cells: Array  # (items,)

    __repr__ = short_repr

    @classmethod
    def of_sizes(cls, sizes: NDArray[np.int64]) -> Padding:
        """The padding of queries with these numbers of items, to the length of the longest."""
        longest = int(sizes.max(initial=0))
        query_of_item = np.repeat(np.arange(len(sizes)), sizes)
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        column = np.arange(len(query_of_item)) - starts
        mask = np.arange(longest)[None, :] < np.asarray(sizes)[:, None]
        return cls(mask, query_of_item * longest + column)

    def pad(self, flat: Array) -> Array:
        """Flat values (items,) as a padded array (query, item), with 0 in the padding; several rows (row, items) one after the other."""
        flat, cells = alike(flat, self.cells)
        num_queries, longest = self.mask.shape
        if flat.ndim == 2 and is_tensor(flat):
            padded = flat.new_zeros(len(flat), num_queries * longest).index_copy(1, cells, flat)
        elif is_tensor(flat):
            padded = flat.new_zeros(num_queries * longest).index_put((cells,), flat)
        else:
            padded = np.zeros((*flat.shape[:-1], num_queries * longest), flat.dtype)
            padded[..., cells] = flat
        return padded.reshape((-1, longest) if flat.ndim == 2 else (num_queries, longest))

    def unpad(self, padded: Array) -> Array:
        """The values of a padded array (query, item) as a flat one (items,)."""
        padded, cells = alike(padded, self.cells)
        return padded.reshape(-1)[cells]

    def to(self, device: Any) -> Padding:
        """The same padding as tensors on a device of torch."""
        import torch

        return Padding(torch.as_tensor(self.mask, device=device), torch.as_tensor(self.cells, device=device))


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


def rows_of_queries(offsets: NDArray[np.int64], queries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the items of these queries, query by query.

    >>> rows_of_queries(np.array([0, 2, 3, 6]), np.array([2, 0]))
    array([3, 4, 5, 0, 1])
    """
    sizes = offsets[queries + 1] - offsets[queries]
    before = np.cumsum(sizes) - sizes
    return np.repeat(offsets[queries] - before, sizes) + np.arange(int(sizes.sum()))
