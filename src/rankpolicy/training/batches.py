"""Minibatches of queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.data.dataset import RankingDataset, rows_of_queries
from rankpolicy.data.padding import Padding


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some queries: their items' features flat, their scalars padded."""

    features: Tensor  # (items, features)
    labels: Tensor  # (query, item)
    padding: Padding

    @property
    def mask(self) -> Tensor:
        return self.padding.mask


@dataclass(frozen=True, slots=True, eq=False)
class RaggedTensors:
    """A dataset's (scaled) features and labels on a device, ready to be cut into batches."""

    features: Tensor  # (items, features)
    labels: Tensor  # (items,)
    offsets: NDArray[np.int64]  # (queries + 1,)

    @classmethod
    def of(cls, dataset: RankingDataset, features: NDArray[np.float32], device: torch.device) -> RaggedTensors:
        return cls(
            torch.from_numpy(features).to(device), torch.from_numpy(dataset.labels.copy()).to(device), dataset.offsets
        )

    def batch(self, queries: NDArray[np.int64]) -> Batch:
        rows = torch.from_numpy(rows_of_queries(self.offsets, queries)).to(self.features.device)
        padding = Padding.of_sizes(self.offsets[queries + 1] - self.offsets[queries]).to(self.features.device)
        return Batch(self.features[rows], padding.pad(self.labels[rows]), padding)

    def shuffled_batches(self, batch_queries: int) -> Iterator[Batch]:
        """Every query once, in an order drawn from torch's current random state."""
        order = torch.randperm(len(self.offsets) - 1).numpy()
        for start in range(0, len(order), batch_queries):
            yield self.batch(order[start : start + batch_queries])
