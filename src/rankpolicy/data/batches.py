"""Minibatches of queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.data.dataset import RankingDataset, rows_of_queries
from rankpolicy.data.padding import Padding
from rankpolicy.data.texts.text_pairs import TextPairs


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some queries: features (or texts) of their items flat, scalars padded."""

    features: Any  # input of the network, one row per item: a tensor (items, features), or TextPairs
    labels: Tensor  # (query, item)
    mask: Tensor  # (query, item) bool
    padding: Padding
    groups: Tensor | None = None  # (query, item) codes of protected groups
    query_weights: Tensor | None = None  # (query,) of mean 1 over all training queries

    def mean_over_queries(self, values: Tensor) -> Tensor:
        """Mean of values (query,), weighted by query."""
        return (values if self.query_weights is None else values * self.query_weights).mean()

    def repeated(self, times: int) -> Batch:
        """The same queries several times, for networks that are trained side by side; features are not repeated."""
        if times == 1:
            return self
        return replace(
            self,
            labels=self.labels.repeat(times, 1),
            mask=self.mask.repeat(times, 1),
            groups=None if self.groups is None else self.groups.repeat(times, 1),
            query_weights=None if self.query_weights is None else self.query_weights.repeat(times),
        )


@dataclass(frozen=True, slots=True, eq=False)
class RaggedTensors:
    """A dataset's (scaled) features or texts and its labels on a device, ready to be cut into batches."""

    features: Tensor | TextPairs  # (items, features), or one pair per item
    labels: Tensor  # (items,)
    offsets: NDArray[np.int64]  # (queries + 1,)
    groups: Tensor | None = None  # (items,) codes of protected groups
    query_weights: Tensor | None = None  # (queries,) of mean 1

    @classmethod
    def of(
        cls, dataset: RankingDataset, features: NDArray[np.float32] | TextPairs, device: torch.device
    ) -> RaggedTensors:
        """Tensors of a dataset whose features have been scaled, or whose texts have been encoded."""
        groups = None
        if dataset.groups is not None:
            groups = torch.from_numpy(np.unique(dataset.groups, return_inverse=True)[1]).to(device)
        weights = None
        if dataset.query_weights is not None:
            # Mean 1, so that a learning rate means the same with and without weights.
            relative = dataset.query_weights / dataset.query_weights.mean()
            weights = torch.from_numpy(relative.astype(np.float32)).to(device)
        return cls(
            (features if isinstance(features, TextPairs) else torch.from_numpy(features)).to(device),
            torch.from_numpy(dataset.labels.copy()).to(device),
            dataset.offsets,
            groups,
            weights,
        )

    def batch(self, queries: NDArray[np.int64]) -> Batch:
        """The batch of these queries."""
        rows = torch.from_numpy(rows_of_queries(self.offsets, queries)).to(self.features.device)
        padding = Padding.of_sizes(self.offsets[queries + 1] - self.offsets[queries]).to(self.features.device)
        return Batch(
            features=self.features[rows],
            labels=padding.pad(self.labels[rows]),
            mask=padding.mask,
            padding=padding,
            groups=None if self.groups is None else padding.pad(self.groups[rows]),
            query_weights=None if self.query_weights is None else self.query_weights[torch.from_numpy(queries)],
        )

    def shuffled_batches(self, batch_queries: int, *, generator: torch.Generator | None = None) -> Iterator[Batch]:
        """All queries once, in a random order; without a generator it is drawn from torch's current random state."""
        order = torch.randperm(len(self.offsets) - 1, generator=generator).numpy()
        for start in range(0, len(order), batch_queries):
            yield self.batch(order[start : start + batch_queries])
