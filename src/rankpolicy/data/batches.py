"""Minibatches of queries as tensors; features stay as they are given and are scaled when a batch is made."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.padding import Padding, rows_of_queries
from rankpolicy.data.rows import NetworkRows, is_on_disk
from rankpolicy.data.stored.pages import MappedPages, num_runs
from rankpolicy.display import frozen_value
from rankpolicy.threads import one_thread_each


@frozen_value()
class Batch:
    """Some queries of a dataset: features (or texts) of their items flat, labels and groups padded."""

    features: Any  # Input of the network, one row per item: a tensor (items, features), QueryRows, or TextPairs
    labels: Tensor  # Labels (query, item)
    mask: Tensor  # Which cells hold an item (query, item)
    padding: Padding  # How flat items and padded cells correspond
    groups: Tensor | None = None  # Codes of protected groups (query, item), or None
    query_weights: Tensor | None = None  # Weights (query,) whose mean over all training queries is 1; None: all equal
    # The reward as rank weights (position,) and item values (query, item), where they were computed beforehand
    reward_forms: Sequence[tuple[Tensor, Tensor]] | None = None
    # How many policies the queries are ranked by, those of one policy after those of another: 1 but where policies
    # are trained together
    num_policies: int = 1

    @property
    def num_queries_of_step(self) -> int:
        """How many queries the step has: those of the batch, and of the other workers' parts of it where there are some."""
        return len(self.labels)

    def mean_over_queries(self, values: Tensor) -> Tensor:
        """Mean of values (query,), weighted by the query weights: a scalar, or (policy,) where there are several."""
        weighted = values if self.query_weights is None else values * self.query_weights
        return weighted.mean() if self.num_policies == 1 else weighted.view(self.num_policies, -1).mean(-1)

    def mean_over_items(self, values: Tensor) -> Tensor:
        """Mean over real items of values (query, item), weighted by the query weights: a scalar, or (policy,) where there are several.

        Sums are divided by the number of items, not by the sum of weights, so that a batch of low-weight queries counts less.
        """
        weighted = values if self.query_weights is None else values * self.query_weights[:, None]
        weighted = weighted.masked_fill(~self.mask, 0.0)
        if self.num_policies == 1:
            return weighted.sum() / self.mask.sum()
        return weighted.view(self.num_policies, -1).sum(-1) / self.mask.view(self.num_policies, -1).sum(-1)

    def of_queries(self, numbers: float | Tensor) -> float | Tensor:
        """A number of each policy (policy,) as one per query (query, 1); one number for all stays as it is."""
        if not isinstance(numbers, Tensor):
            return numbers
        return numbers.repeat_interleave(len(self.labels) // self.num_policies)[:, None]

    def repeated(self, times: int) -> Batch:
        """The batch with its queries repeated, for networks that are trained side by side; features are not repeated."""
        if times == 1:
            return self
        return replace(
            self,
            labels=self.labels.repeat(times, 1),
            mask=self.mask.repeat(times, 1),
            groups=None if self.groups is None else self.groups.repeat(times, 1),
            query_weights=None if self.query_weights is None else self.query_weights.repeat(times),
        )


@frozen_value()
class RaggedTensors:
    """A dataset as tensors on a device, from which batches are cut."""

    features: NetworkRows  # Scaled features (items, features), features that are scaled when a batch is made, or one pair of texts per item
    labels: Tensor  # Labels (items,)
    offsets: NDArray[np.int64]  # Where the items of each query start (queries + 1,)
    groups: Tensor | None = None  # Codes of protected groups (items,), or None
    query_weights: Tensor | None = None  # Weights (queries,) with mean 1; None: all equal
    label_pages: MappedPages | None = None  # Where the labels are those of a mapped file: its pages

    @classmethod
    def of(
        cls,
        dataset: RankingDataset,
        features: NDArray[np.float32] | NetworkRows,
        device: torch.device,
    ) -> RaggedTensors:
        """The tensors of a dataset."""
        groups = None
        if dataset.groups_by_query is not None:
            groups = torch.from_numpy(np.unique(dataset.groups_by_query, return_inverse=True)[1]).to(device)
        weights = None
        if dataset.query_weights is not None:
            # Mean 1, so that a learning rate has the same effect with and without weights.
            relative = dataset.query_weights / dataset.query_weights.mean()
            weights = torch.from_numpy(relative.astype(np.float32)).to(device)
        is_mapped = isinstance(dataset.labels_by_query, np.memmap) and device.type == "cpu"
        return cls(
            (torch.from_numpy(features) if isinstance(features, np.ndarray) else features).to(device),
            _read_only(dataset.labels_by_query)
            if is_mapped
            else torch.from_numpy(dataset.labels_by_query.copy()).to(device),
            dataset.query_offsets,
            groups,
            weights,
            MappedPages(dataset.labels_by_query) if is_mapped else None,
        )

    def batch(self, queries: NDArray[np.int64]) -> Batch:
        """A batch of these queries."""
        rows = torch.from_numpy(rows_of_queries(self.offsets, queries)).to(self.features.device)
        padding = Padding.of_sizes(self.offsets[queries + 1] - self.offsets[queries]).to(self.features.device)
        labels = self.labels[rows]
        if self.label_pages is not None:
            self.label_pages.touched(labels.nbytes, num_runs(rows.numpy()))
        return Batch(
            features=self.features[rows],
            labels=padding.pad(labels),
            mask=padding.mask,
            padding=padding,
            groups=None if self.groups is None else padding.pad(self.groups[rows]),
            query_weights=None if self.query_weights is None else self.query_weights[torch.from_numpy(queries)],
        )

    def shuffled_batches(self, batch_queries: int, *, generator: torch.Generator | None = None) -> Iterator[Batch]:
        """All queries once, in random order; of data on disk the next batch is read while one is used."""
        device = None if generator is None else generator.device
        order = torch.randperm(len(self.offsets) - 1, generator=generator, device=device).cpu().numpy()
        batches = (self.batch(order[start : start + batch_queries]) for start in range(0, len(order), batch_queries))
        is_in_memory = isinstance(self.features, Tensor) or not is_on_disk(self.features)
        return batches if is_in_memory else read_ahead(batches)


def _read_only(numbers: NDArray[np.float32]) -> Tensor:
    """A tensor in the memory of an array that nobody must write to."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return torch.from_numpy(numbers)


Value = TypeVar("Value")


def read_ahead(values: Iterator[Value]) -> Iterator[Value]:
    """The same values in the same order; while one is used, a thread makes the next.

    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1, thread_name_prefix="read-ahead") as reader:
        coming = reader.submit(_alone, values.__next__)
        while True:
            try:
                value = coming.result()
            except StopIteration:
                return
            coming = reader.submit(_alone, values.__next__)
            yield value


def _alone(read: Callable[[], Value]) -> Value:
    with one_thread_each():  # the threads of kernels belong to training
        return read()
