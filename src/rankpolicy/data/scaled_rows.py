"""Features that are scaled when they are read: whole datasets stay as they are given, and only the items of a batch are held scaled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.data.scaling import FeatureScaling
from rankpolicy.data.sparse import SparseFeatures
from rankpolicy.display import short_repr

_BLOCK_ITEMS = 8192
_BLOCK_CELLS = 1 << 22  # of sparse features, which may have many columns


@dataclass(frozen=True, slots=True, eq=False)
class ScaledRows:
    """Rows of features, for a scaling that takes every item on its own.

    Parameters
    ----------
    features
        Features before scaling (items, features).
    scaling
        How they are scaled.
    device
        Where the scaled rows go.
    """

    features: NDArray[np.float32]
    scaling: FeatureScaling
    device: torch.device

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Scaled features (rows, columns) of some items."""
        return torch.from_numpy(self.scaling.apply(self.features[rows.cpu().numpy()])).to(self.device)

    def to(self, device: torch.device) -> ScaledRows:
        """The same rows, scaled onto another device.

        Parameters
        ----------
        device
            Where the scaled rows go.
        """
        return ScaledRows(self.features, self.scaling, device)

    def blocks(self) -> Iterator[Tensor]:
        """All items in order, scaled, some thousands at a time."""
        step = _BLOCK_ITEMS
        if isinstance(self.features, SparseFeatures):
            step = min(step, max(1, _BLOCK_CELLS // max(1, self.features.shape[1])))
        for start in range(0, len(self), step):
            yield torch.from_numpy(self.scaling.apply(self.features[start : start + step])).to(self.device)
