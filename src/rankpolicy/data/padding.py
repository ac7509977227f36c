"""Conversion between flat arrays of items and padded arrays of queries.

Features stay flat; only scalars (scores, labels, groups) are padded to ``(query, item)`` with a mask. Queries of similar length are
padded together, so that padding costs no more than a multiple of their items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.display import short_repr

_SHORT = 16  # lists up to this length are padded together


@dataclass(frozen=True, slots=True)
class Padding:
    """The place of each flat item in a padded ``(query, item)`` array.

    >>> padding = Padding.of_sizes(np.array([2, 1]))
    >>> padding.pad(torch.tensor([5.0, 6.0, 7.0]))
    tensor([[5., 6.],
            [7., 0.]])
    >>> padding.unpad(padding.mask).tolist()
    [True, True, True]
    """

    mask: Tensor  # (query, item) bool
    cells: Tensor  # (items,)

    __repr__ = short_repr

    @classmethod
    def of_sizes(cls, sizes: NDArray[np.int64]) -> Padding:
        """The padding of queries with these numbers of items, to the length of the longest."""
        longest = int(sizes.max(initial=0))
        query_of_item = np.repeat(np.arange(len(sizes)), sizes)
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        column = np.arange(len(query_of_item)) - starts
        mask = torch.from_numpy(np.arange(longest)[None, :] < np.asarray(sizes)[:, None])
        return cls(mask, torch.from_numpy(query_of_item * longest + column))

    def pad(self, flat: Tensor) -> Tensor:
        """Flat values (items,) as a padded array (query, item), with 0 in the padding; several rows (row, items) one after the other."""
        if flat.dim() == 2:
            padded = flat.new_zeros(len(flat), self.mask.numel()).index_copy(1, self.cells, flat)
            return padded.view(-1, self.mask.shape[1])
        return flat.new_zeros(self.mask.numel()).index_put((self.cells,), flat).view(self.mask.shape)

    def unpad(self, padded: Tensor) -> Tensor:
        """The values of a padded array (query, item) as a flat one (items,)."""
        return padded.reshape(-1)[self.cells]

    def to(self, device: torch.device | str) -> Padding:
        """The same padding on another device."""
        return Padding(self.mask.to(device), self.cells.to(device))


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
