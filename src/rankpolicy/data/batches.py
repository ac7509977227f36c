"""Minibatches of queries, as tensors on a device or as arrays; features stay as they are given and are scaled when a batch is made."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arrays import Array, Generator, alike, is_tensor, masked_fill, namespace, permutation
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.padding import Padding, rows_of_queries
from rankpolicy.data.rows import is_on_disk
from rankpolicy.data.stored.pages import MappedPages, num_runs
from rankpolicy.display import frozen_value
from rankpolicy.threads import one_thread_each

if TYPE_CHECKING:
    import torch

    from rankpolicy.data.rows import NetworkRows


@frozen_value()
class Batch:
    """Some queries of a dataset: features (or texts) of their items flat, labels and groups padded."""

    features: Any  # Input of the network, one row per item: features (items, features), QueryRows, or TextPairs
    labels: Array  # Labels (query, item)
    mask: Array  # Which cells hold an item (query, item)
    padding: Padding  # How flat items and padded cells correspond
    groups: Array | None = None  # Codes of protected groups (query, item), or None
    query_weights: Array | None = None  # Weights (query,) whose mean over all training queries is 1; None: all equal
    # The reward as rank weights (position,) and item values (query, item), where they were computed beforehand
    reward_forms: Sequence[tuple[Array, Array]] | None = None
    # How many policies the queries are ranked by, those of one policy after those of another: 1 but where policies
    # are trained together
    num_policies: int = 1

    @property
    def num_queries_of_step(self) -> int:
        """How many queries the step has: those of the batch, and of the other workers' parts of it where there are some."""
        return len(self.labels)

    def mean_over_queries(self, values: Array) -> Array:
        """Mean of values (query,), weighted by the query weights: a scalar, or (policy,) where there are several."""
        weighted = values if self.query_weights is None else values * self.query_weights
        return weighted.mean() if self.num_policies == 1 else weighted.reshape(self.num_policies, -1).mean(-1)

    def mean_over_items(self, values: Array) -> Array:
        """Mean over real items of values (query, item), weighted by the query weights: a scalar, or (policy,) where there are several.

        Sums are divided by the number of items, not by the sum of weights, so that a batch of low-weight queries counts less.
        """
        weighted = values if self.query_weights is None else values * self.query_weights[:, None]
        weighted = masked_fill(weighted, ~self.mask, 0.0)
        if self.num_policies == 1:
            return weighted.sum() / self.mask.sum()
        return weighted.reshape(self.num_policies, -1).sum(-1) / self.mask.reshape(self.num_policies, -1).sum(-1)

    def weights_in_mean(self) -> float | Array:
        """What ``mean_over_queries`` multiplies the value of each query by: (query, 1), or one number for all."""
        num_queries = len(self.labels) // self.num_policies
        return 1.0 / num_queries if self.query_weights is None else self.query_weights[:, None] / num_queries

    def of_queries(self, numbers: float | Array) -> float | Array:
        """A number of each policy (policy,) as one per query (query, 1); one number for all stays as it is."""
        if isinstance(numbers, float | int):
            return numbers
        return namespace(numbers).repeat(numbers, len(self.labels) // self.num_policies)[:, None]

    def repeated(self, times: int) -> Batch:
        """The batch with its queries repeated, for networks that are trained side by side; features are not repeated."""
        if times == 1:
            return self
        concat = namespace(self.labels).concat
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ("labels", "mask", "groups", "query_weights")}
        return replace(self, **{name: concat([x] * times) for name, x in arrays.items() if x is not None})


@frozen_value()
class RaggedTensors:
    """A dataset as tensors on a device, or as arrays, from which batches are cut."""

    features: NetworkRows  # Scaled features (items, features), features that are scaled when a batch is made, or one pair of texts per item
    labels: Array  # Labels (items,)
    offsets: NDArray[np.int64]  # Where the items of each query start (queries + 1,)
    groups: Array | None = None  # Codes of protected groups (items,), or None
    query_weights: Array | None = None  # Weights (queries,) with mean 1; None: all equal
    label_pages: MappedPages | None = None  # Where the labels are those of a mapped file: its pages

    @classmethod
    def of(
        cls,
        dataset: RankingDataset,
        features: NDArray[np.float32] | NetworkRows,
        device: torch.device | None = None,
    ) -> RaggedTensors:
        """The tensors of a dataset on a device; arrays without one."""
        labels, groups, weights = dataset.labels_by_query, None, None
        if dataset.groups_by_query is not None:
            groups = np.unique(dataset.groups_by_query, return_inverse=True)[1]
        if dataset.query_weights is not None:
            # Mean 1, so that a learning rate has the same effect with and without weights.
            weights = (dataset.query_weights / dataset.query_weights.mean()).astype(np.float32)
        is_mapped = isinstance(labels, np.memmap) and (device is None or device.type == "cpu")
        pages = MappedPages(labels) if is_mapped else None
        if device is None:
            return cls(features, labels, dataset.query_offsets, groups, weights, pages)
        import torch

        return cls(
            (torch.from_numpy(features) if isinstance(features, np.ndarray) else features).to(device),
            _read_only(labels) if is_mapped else torch.from_numpy(labels.copy()).to(device),
            dataset.query_offsets,
            None if groups is None else torch.from_numpy(groups).to(device),
            None if weights is None else torch.from_numpy(weights).to(device),
            pages,
        )

    def batch(self, queries: NDArray[np.int64]) -> Batch:
        """A batch of these queries."""
        row_numbers = rows_of_queries(self.offsets, queries)
        padding = Padding.of_sizes(self.offsets[queries + 1] - self.offsets[queries])
        if is_tensor(self.labels):
            padding = padding.to(self.labels.device)
        _, rows, indices = alike(self.labels, row_numbers, queries)
        labels = self.labels[rows]
        if self.label_pages is not None:
            self.label_pages.touched(labels.nbytes, num_runs(row_numbers))
        return Batch(
            features=self.features[rows],
            labels=padding.pad(labels),
            mask=padding.mask,
            padding=padding,
            groups=None if self.groups is None else padding.pad(self.groups[rows]),
            query_weights=None if self.query_weights is None else self.query_weights[indices],
        )

    def shuffled_batches(self, batch_queries: int, *, generator: Generator | None = None) -> Iterator[Batch]:
        """All queries once, in random order; of data on disk the next batch is read while one is used."""
        order = permutation(len(self.offsets) - 1, like=self.labels, generator=generator)
        batches = (self.batch(order[start : start + batch_queries]) for start in range(0, len(order), batch_queries))
        is_in_memory = (
            isinstance(self.features, np.ndarray) or is_tensor(self.features) or not is_on_disk(self.features)
        )
        return batches if is_in_memory else read_ahead(batches)


def _read_only(numbers: NDArray[np.float32]) -> Array:
    """A tensor in the memory of an array that nobody must write to."""
    import torch

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
