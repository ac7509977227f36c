"""Padding of ragged arrays and its inverse, in one place.

Features stay flat; only scalars (scores, labels, groups) are padded to ``(query, item)`` with a mask.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Padding:
    """Where each flat item goes in a padded ``(query, item)`` array.

    >>> padding = Padding.of_sizes(np.array([2, 1]))
    >>> padding.pad(torch.tensor([5.0, 6.0, 7.0]))
    tensor([[5., 6.],
            [7., 0.]])
    >>> padding.unpad(padding.mask).tolist()
    [True, True, True]
    """

    mask: Tensor  # (query, item) bool
    cells: Tensor  # (items,) index of each flat item in the flattened padded array

    @classmethod
    def of_sizes(cls, sizes: NDArray[np.int64]) -> Padding:
        """Padding of queries with these numbers of items, to the length of the longest."""
        longest = int(sizes.max(initial=0))
        query_of_item = np.repeat(np.arange(len(sizes)), sizes)
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        column = np.arange(len(query_of_item)) - starts
        mask = torch.from_numpy(np.arange(longest)[None, :] < np.asarray(sizes)[:, None])
        return cls(mask, torch.from_numpy(query_of_item * longest + column))

    def pad(self, flat: Tensor) -> Tensor:
        """Flat (items,) to padded (query, item); padding holds 0."""
        return flat.new_zeros(self.mask.numel()).index_put((self.cells,), flat).view(self.mask.shape)

    def unpad(self, padded: Tensor) -> Tensor:
        """Padded (query, item) back to flat (items,)."""
        return padded.reshape(-1)[self.cells]

    def to(self, device: torch.device | str) -> Padding:
        """The same on another device."""
        return Padding(self.mask.to(device), self.cells.to(device))
