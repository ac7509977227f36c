"""Batches of data that stay on the device: queries of similar length are padded together, and a step is one CUDA graph.

Nothing waits for the device within an epoch. A step finds its queries by a counter on the device, so that one graph serves all full steps
of a bucket; a step that cannot be captured is run operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.data.padding import Padding
from rankpolicy.training.cuda_graph import capture_all, graph_of, warm_up
from rankpolicy.training.grouped_batches import StepBatch

_LEAST_FILLED = 0.8  # the shortest query of a bucket, relative to the longest
_MOST_BUCKETS = 8
_NO_PADDING = Padding(torch.ones(0, 0, dtype=torch.bool), torch.zeros(0, dtype=torch.int64))  # rows are cells


@dataclass(slots=True, kw_only=True, eq=False)
class Bucket:
    """Queries of similar length. The axis (query) goes through the queries of all datasets, one dataset after the other."""

    rows: Tensor  # (query, item) row of features of each cell; a cell without an item has the first row of its query
    labels: Tensor  # (query, item)
    mask: Tensor  # (query, item)
    groups: Tensor | None  # (query, item)
    query_weights: Tensor | None  # (query,)
    reward_forms: Sequence[tuple[Tensor, Tensor]] | None  # rank weights and item values (query, item) of each term
    starts: Sequence[int]  # where the queries of each group start on the axis (query)
    order: Tensor  # (group, query of the group) the order of this epoch
    step: Tensor  # (1,) number of the next step

    def shuffle(self, generators: Sequence[torch.Generator]) -> None:
        """A new random order for each group."""
        for order, start, generator in zip(self.order, self.starts, generators, strict=True):
            order.copy_(torch.randperm(len(order), generator=generator, device=order.device)).add_(start)
        self.step.zero_()


@dataclass(slots=True, kw_only=True, eq=False)
class Program:
    """A step over a fixed number of queries of each group of a bucket, which runs ``times`` in an epoch."""

    bucket: Bucket
    num_queries: int
    times: int
    is_remainder: bool  # whether it takes the queries that are left after the full steps
    numbers: Tensor  # (query,) 0, 1, ... to the number of queries
    graph: Any = None

    def next_queries(self) -> Tensor:
        """The queries of the next step (group, query)."""
        bucket = self.bucket
        if self.is_remainder:
            return bucket.order[:, bucket.order.shape[1] - self.num_queries :]
        indices = torch.add(self.numbers, bucket.step, alpha=self.num_queries)
        bucket.step.add_(1)
        return bucket.order.index_select(1, indices)


class DeviceBatches:
    """The batches of an epoch over data on the device, for the networks of each group (``members_per_group``).

    ``reward`` is what the objective maximises where that is a sum over items: what is made of labels is then computed once. ``gathers``
    says whether a batch holds the features of its own items; otherwise it has those of all, and the numbers of its rows.
    """

    def __init__(
        self,
        trains: Sequence[RaggedTensors],
        batch_queries: int,
        *,
        generators: Sequence[torch.Generator],
        members_per_group: int,
        num_policies: int,
        reward: Any = None,
        gathers: bool = True,
    ) -> None:
        self.generators, self.members_per_group, self.num_policies = generators, members_per_group, num_policies
        self.gathers = gathers
        datasets = list({id(train): train for train in trains}.values())
        index_of = {id(train): index for index, train in enumerate(datasets)}
        features = [train.features for train in datasets]
        assert all(isinstance(values, Tensor) for values in features)
        self.features: Tensor = features[0] if len(features) == 1 else torch.cat(features)  # type: ignore[assignment,arg-type]
        self.programs: list[Program] = []
        for queries in _buckets([np.diff(train.offsets) for train in datasets], batch_queries):
            bucket = bucket_of(datasets, queries, [index_of[id(train)] for train in trains])
            if reward is not None:
                forms = reward.additive_forms(bucket.labels, bucket.mask)
                bucket.reward_forms = [(weights, values.float()) for weights, values in forms]
            self.programs += programs_of(bucket, batch_queries)

    def batch(self, program: Program) -> StepBatch:
        """What the next step of a program reads."""
        bucket, queries = program.bucket, program.next_queries()
        num_groups, flat = len(queries), queries.reshape(-1)

        def of_members(values: Tensor) -> Tensor:
            """(group * member * query, ...)"""
            by_group = values.index_select(0, flat).view(num_groups, 1, queries.shape[1], *values.shape[1:])
            repeated = by_group.expand(-1, self.members_per_group, *by_group.shape[2:])
            return repeated.reshape(-1, *values.shape[1:])

        forms = bucket.reward_forms
        batch = Batch(
            features=None,
            labels=of_members(bucket.labels),
            mask=of_members(bucket.mask),
            padding=_NO_PADDING,
            groups=None if bucket.groups is None else of_members(bucket.groups),
            query_weights=None if bucket.query_weights is None else of_members(bucket.query_weights),
            reward_forms=None if forms is None else [(weights, of_members(values)) for weights, values in forms],
            num_policies=self.num_policies,
        )
        rows = bucket.rows.index_select(0, flat).view(num_groups, -1)
        features = self.features
        if self.gathers:
            features = features.index_select(0, rows.view(-1)).view(*rows.shape, -1)
        return StepBatch(features, [rows.shape[1]] * len(rows), None, batch, program.num_queries, rows)

    def run_epoch(self, step: Callable[[StepBatch], None], *, epoch: int) -> None:
        """Take all steps of an epoch, by their graphs where ``capture`` has made some."""
        for program in programs_of_epoch(self.programs, epoch=epoch, generators=self.generators):
            if program.graph is None:
                step(self.batch(program))
            else:
                program.graph.replay()

    def capture(self, step: Callable[[StepBatch], None], changing_tensors: Sequence[Tensor]) -> None:
        """Make a CUDA graph of the step of each program; it changes ``changing_tensors`` in place and waits for nothing."""

        def graph(program: Program, pool: Any) -> torch.cuda.CUDAGraph:
            def first_step() -> None:
                program.bucket.step.zero_()
                step(self.batch(program))

            warm_up(first_step)
            program.bucket.step.zero_()  # not within the graph, which finds its queries by the counter
            return graph_of(lambda: step(self.batch(program)), generators=self.generators, pool=pool)

        for program in self.programs:
            program.bucket.shuffle(self.generators)
        capture_all(self.programs, graph, generators=self.generators, changing_tensors=changing_tensors)


def programs_of(bucket: Bucket, batch_queries: int) -> list[Program]:
    """The full steps over a bucket, and a smaller one for the queries that are left."""
    times, remainder = divmod(bucket.order.shape[1], batch_queries)
    return [
        Program(
            bucket=bucket,
            num_queries=num_queries,
            times=runs,
            is_remainder=num_queries < batch_queries,
            numbers=torch.arange(num_queries, device=bucket.step.device),
        )
        for num_queries, runs in ((batch_queries, times), (remainder, 1))
        if num_queries > 0 and runs > 0
    ]


def programs_of_epoch(
    programs: Sequence[Program], *, epoch: int, generators: Sequence[torch.Generator]
) -> Iterator[Program]:
    """Each program as often as it runs; the order of programs depends on the number of the epoch alone, that of queries is drawn."""
    for bucket in {id(program.bucket): program.bucket for program in programs}.values():
        bucket.shuffle(generators)
    numbers = np.repeat(np.arange(len(programs)), [program.times for program in programs])
    for number in np.random.default_rng(epoch).permutation(numbers):
        yield programs[number]


def _buckets(sizes: Sequence[NDArray[np.int64]], batch_queries: int) -> list[list[NDArray[np.int64]]]:
    """The queries of each bucket and dataset, longest first. Datasets are cut at the same ranks of their queries by length.

    >>> [queries.tolist() for (queries,) in _buckets([np.array([9, 10, 2, 10, 2])], 2)]
    [[1, 3, 0], [2, 4]]
    """
    orders = [np.argsort(-lengths, kind="stable") for lengths in sizes]
    longest = np.max([lengths[order] for lengths, order in zip(sizes, orders, strict=True)], axis=0)
    edges = [0]
    while edges[-1] < len(longest):
        start = edges[-1]
        is_last = len(edges) == _MOST_BUCKETS
        end = len(longest) if is_last else int(np.searchsorted(-longest, -_LEAST_FILLED * longest[start], side="right"))
        end = max(end, start + batch_queries)
        # What would not fill a step stays with the bucket before.
        edges.append(len(longest) if len(longest) - end < batch_queries and longest[-1] * 2 > longest[start] else end)
    edges[-1] = len(longest)
    return [[order[start:end] for order in orders] for start, end in pairwise(edges)]


def bucket_of(
    datasets: Sequence[RaggedTensors], queries: Sequence[NDArray[np.int64]], of_groups: Sequence[int]
) -> Bucket:
    """The bucket of these queries of each dataset; ``of_groups`` is the dataset of each group."""
    device, num_queries = datasets[0].labels.device, len(queries[0])
    first_rows = np.cumsum([0, *(len(dataset.labels) for dataset in datasets)])
    starts = np.concatenate(
        [dataset.offsets[chosen] + first for dataset, chosen, first in zip(datasets, queries, first_rows, strict=False)]
    )
    sizes = np.concatenate(
        [
            dataset.offsets[chosen + 1] - dataset.offsets[chosen]
            for dataset, chosen in zip(datasets, queries, strict=True)
        ]
    )
    columns = np.arange(int(sizes.max()))
    mask = columns < sizes[:, None]
    rows = torch.from_numpy(starts[:, None] + np.where(mask, columns, 0)).to(device)
    is_item = torch.from_numpy(mask).to(device)

    def of_cells(values: Sequence[Tensor | None]) -> Tensor | None:
        arrays = [array for array in values if array is not None]
        return torch.cat(arrays)[rows].masked_fill(~is_item, 0) if arrays else None

    labels = of_cells([dataset.labels for dataset in datasets])
    assert labels is not None
    weights = [
        dataset.query_weights[torch.from_numpy(chosen).to(device)]
        for dataset, chosen in zip(datasets, queries, strict=True)
        if dataset.query_weights is not None
    ]
    return Bucket(
        rows=rows,
        labels=labels,
        mask=is_item,
        groups=of_cells([dataset.groups for dataset in datasets]),
        query_weights=torch.cat(weights) if weights else None,
        reward_forms=None,
        starts=[dataset * num_queries for dataset in of_groups],
        order=torch.zeros(len(of_groups), num_queries, dtype=torch.int64, device=device),
        step=torch.zeros(1, dtype=torch.int64, device=device),
    )
