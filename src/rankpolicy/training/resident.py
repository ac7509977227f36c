"""Training steps over data that stay on the device: queries of similar length are padded together, and a step is one CUDA graph.

Nothing waits for the device within an epoch. A step finds its queries by a counter on the device, so that one graph serves all full steps
of a bucket; a step that cannot be captured is run operation by operation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.kernels import on_gpu
from rankpolicy.training.batches import NO_PADDING, StepBatch

logger = logging.getLogger("rankpolicy.training")

_LEAST_FILLED = 0.8  # the shortest query of a bucket, relative to the longest
_MOST_BUCKETS = 8
_WARM_UP = 2  # steps before a capture, in which kernels are compiled


@dataclass(slots=True, kw_only=True, eq=False)
class Bucket:
    """Queries of similar length. The axis (query) goes through the queries of all datasets, one dataset after the other.

    Parameters
    ----------
    rows
        The row of features of each cell (query, item); a cell without an item has the first row of its query.
    labels, mask, groups, query_weights
        As a ``Batch`` has them, (query, item) and (query,).
    reward_forms
        Rank weights and item values (query, item) of each term of the reward; None where the objective has no such reward.
    starts
        Where the queries of each group start on the axis (query).
    order
        The queries of each group in the order of this epoch (group, query of the group).
    step
        The number of the next step (1,).
    """

    rows: Tensor
    labels: Tensor
    mask: Tensor
    groups: Tensor | None
    query_weights: Tensor | None
    reward_forms: Sequence[tuple[Tensor, Tensor]] | None
    starts: Sequence[int]
    order: Tensor
    step: Tensor

    def shuffle(self, generators: Sequence[torch.Generator]) -> None:
        """A new random order for each group.

        Parameters
        ----------
        generators
            One per group.
        """
        for own, start, generator in zip(self.order, self.starts, generators, strict=True):
            own.copy_(torch.randperm(len(own), generator=generator, device=own.device)).add_(start)
        self.step.zero_()


@dataclass(slots=True, kw_only=True, eq=False)
class Program:
    """A step over a fixed number of queries of a bucket.

    Parameters
    ----------
    bucket
        The queries.
    num_queries
        How many queries of each group a step takes.
    is_rest
        Whether it takes those that are left after the full steps.
    times
        How often it runs in an epoch.
    numbers
        0, 1, ... to the number of queries (query,).
    past_the_end
        A number of a step after all others (1,).
    replay
        Runs the captured step; None: it is run operation by operation.
    """

    bucket: Bucket
    num_queries: int
    is_rest: bool
    times: int
    numbers: Tensor
    past_the_end: Tensor
    replay: Callable[[], None] | None = None

    def next_queries(self) -> Tensor:
        """The queries of the next step (group, query)."""
        bucket = self.bucket
        if self.is_rest:
            return bucket.order[:, bucket.order.shape[1] - self.num_queries :]
        places = torch.add(self.numbers, bucket.step, alpha=self.num_queries)
        bucket.step.add_(1)
        return bucket.order.index_select(1, places)


class ResidentSteps:
    """The steps of an epoch over data on the device.

    Parameters
    ----------
    trains
        The training data of each group, all with as many queries.
    batch_queries
        Queries per step and network.
    generators
        Sources of the random orders, one per group.
    members_per_group
        How many networks read the batches of a group.
    num_policies
        How many policies there are in all groups.
    reward
        What the objective maximises, where that is a sum over items; what is made of labels is then computed once.
    gathers
        Whether a batch holds the features of its own items; otherwise those of all, and the numbers of its rows.
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
        place_of = {id(train): place for place, train in enumerate(datasets)}
        features = [train.features for train in datasets]
        assert all(isinstance(own, Tensor) for own in features)
        self.features: Tensor = features[0] if len(features) == 1 else torch.cat(features)  # type: ignore[assignment,arg-type]
        self.programs: list[Program] = []
        for queries in _buckets([np.diff(train.offsets) for train in datasets], batch_queries):
            bucket = bucket_of(datasets, queries, [place_of[id(train)] for train in trains])
            if reward is not None:
                forms = reward.additive_forms(bucket.labels, bucket.mask)
                bucket.reward_forms = [(weights, values.float()) for weights, values in forms]
            num_queries = bucket.order.shape[1]
            times, rest = divmod(num_queries, batch_queries)
            if times:
                self.programs.append(new_program(bucket, batch_queries, times=times))
            if rest:
                self.programs.append(new_program(bucket, rest, is_rest=True))

    def batch(self, program: Program) -> StepBatch:
        """What the next step of a program reads.

        Parameters
        ----------
        program
            One of ``programs``.
        """
        if on_gpu(self.features):
            return self._batch_by_kernel(program)
        queries, bucket = program.next_queries(), program.bucket
        num_groups = len(queries)
        flat = queries.reshape(-1)
        rows = bucket.rows.index_select(0, flat)
        mask = bucket.mask.index_select(0, flat)
        batch = Batch(
            features=None,
            labels=self._of_members(bucket.labels.index_select(0, flat), num_groups),
            mask=self._of_members(mask, num_groups),
            padding=NO_PADDING,
            groups=None if bucket.groups is None else self._of_members(bucket.groups.index_select(0, flat), num_groups),
            query_weights=None
            if bucket.query_weights is None
            else self._of_members(bucket.query_weights.index_select(0, flat)[:, None], num_groups)[:, 0],
            reward_forms=None
            if bucket.reward_forms is None
            else [
                (weights, self._of_members(values.index_select(0, flat), num_groups))
                for weights, values in bucket.reward_forms
            ],
            num_policies=self.num_policies,
        )
        return self._step_batch(program, rows.view(num_groups, -1), batch)

    def _step_batch(self, program: Program, rows: Tensor, batch: Batch) -> StepBatch:
        num_rows = [rows.shape[1]] * len(rows)
        if not self.gathers:
            return StepBatch(self.features, num_rows, None, None, batch, program.num_queries, rows)
        features = self.features.index_select(0, rows.view(-1)).view(*rows.shape, -1)
        return StepBatch(features, num_rows, None, None, batch, program.num_queries)

    def _batch_by_kernel(self, program: Program) -> StepBatch:
        from rankpolicy.kernels.triton.cut import cut_queries

        bucket = program.bucket
        forms = bucket.reward_forms or ()
        cut = cut_queries(
            bucket.order,
            program.past_the_end if program.is_rest else bucket.step,
            num_queries=program.num_queries,
            members=self.members_per_group,
            rows=bucket.rows,
            labels=bucket.labels,
            mask=bucket.mask,
            values=[values for _, values in forms],
            groups=bucket.groups,
            query_weights=bucket.query_weights,
        )
        if not program.is_rest:
            bucket.step.add_(1)
        batch = Batch(
            features=None,
            labels=cut.labels,
            mask=cut.mask,
            padding=NO_PADDING,
            groups=cut.groups,
            query_weights=cut.query_weights,
            reward_forms=None
            if bucket.reward_forms is None
            else [(weights, values) for (weights, _), values in zip(forms, cut.values, strict=True)],
            num_policies=self.num_policies,
        )
        return self._step_batch(program, cut.rows, batch)

    def _of_members(self, values: Tensor, num_groups: int) -> Tensor:
        """Values (group * query, item) repeated for the networks of each group (group * member * query, item)."""
        if self.members_per_group == 1:
            return values
        by_group = values.view(num_groups, 1, -1, values.shape[-1])
        return by_group.expand(-1, self.members_per_group, -1, -1).reshape(-1, values.shape[-1])

    def run_epoch(self, step: Callable[[StepBatch], None], *, epoch: int) -> None:
        """Take all steps of an epoch.

        Parameters
        ----------
        step
            What is done with each batch; where ``capture`` has captured it, its graph runs instead.
        epoch
            How many epochs are done; the order of buckets depends on it alone.
        """
        for bucket in {id(program.bucket): program.bucket for program in self.programs}.values():
            bucket.shuffle(self.generators)
        numbers = np.repeat(np.arange(len(self.programs)), [program.times for program in self.programs])
        for number in np.random.default_rng(epoch).permutation(numbers):
            program = self.programs[number]
            if program.replay is None:
                step(self.batch(program))
            else:
                program.replay()

    def capture(self, step: Callable[[StepBatch], None], state: Sequence[Tensor]) -> None:
        """Make a CUDA graph of the step of each program, the longest first; the tensors of ``state`` end as they were.

        Parameters
        ----------
        step
            What is done with each batch; it changes tensors in place and waits for nothing.
        state
            All tensors that a step changes.
        """
        drawn = [generator.get_state() for generator in self.generators]
        before = [tensor.clone() for tensor in state]
        for program in self.programs:
            program.bucket.shuffle(self.generators)
        pool = torch.cuda.graph_pool_handle()
        try:
            for program in self.programs:
                program.replay = self._captured(program, step, pool)
        except RuntimeError as error:
            for program in self.programs:
                program.replay = None
            torch.cuda.synchronize()
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            logger.info("training runs without a CUDA graph: %s", reason)
        for tensor, value in zip(state, before, strict=True):
            tensor.copy_(value)
        for generator, own in zip(self.generators, drawn, strict=True):
            generator.set_state(own)

    def _captured(self, program: Program, step: Callable[[StepBatch], None], pool: Any) -> Callable[[], None]:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                program.bucket.step.zero_()
                step(self.batch(program))
        torch.cuda.current_stream().wait_stream(stream)
        program.bucket.step.zero_()
        graph = torch.cuda.CUDAGraph()
        for generator in {id(generator): generator for generator in self.generators}.values():
            graph.register_generator_state(generator)
        with torch.cuda.graph(graph, pool=pool):
            step(self.batch(program))
        return graph.replay


def new_program(bucket: Bucket, num_queries: int, *, is_rest: bool = False, times: int = 1) -> Program:
    numbers = torch.arange(num_queries, device=bucket.step.device)
    return Program(
        bucket=bucket,
        num_queries=num_queries,
        is_rest=is_rest,
        times=times,
        numbers=numbers,
        past_the_end=torch.full_like(bucket.step, bucket.order.shape[1]),
    )


def _buckets(sizes: Sequence[NDArray[np.int64]], batch_queries: int) -> list[list[NDArray[np.int64]]]:
    """The queries of each bucket and dataset, longest first. Datasets are cut at the same places of their queries by length.

    >>> [own.tolist() for (own,) in _buckets([np.array([9, 10, 2, 10, 2])], 2)]
    [[1, 3, 0], [2, 4]]
    """
    orders = [np.argsort(-own, kind="stable") for own in sizes]
    longest = np.max([own[order] for own, order in zip(sizes, orders, strict=True)], axis=0)
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
        [dataset.offsets[own] + first for dataset, own, first in zip(datasets, queries, first_rows, strict=False)]
    )
    sizes = np.concatenate(
        [dataset.offsets[own + 1] - dataset.offsets[own] for dataset, own in zip(datasets, queries, strict=True)]
    )
    columns = np.arange(int(sizes.max()))
    mask = columns < sizes[:, None]
    rows = torch.from_numpy(starts[:, None] + np.where(mask, columns, 0)).to(device)
    is_item = torch.from_numpy(mask).to(device)
    labels = torch.cat([dataset.labels for dataset in datasets])[rows].masked_fill(~is_item, 0)
    groups = weights = None
    if datasets[0].groups is not None:
        codes = torch.cat([dataset.groups for dataset in datasets if dataset.groups is not None])
        groups = codes[rows].masked_fill(~is_item, 0)
    if datasets[0].query_weights is not None:
        parts = zip(datasets, queries, strict=True)
        weights = torch.cat(
            [dataset.query_weights[torch.from_numpy(own).to(device)] for dataset, own in parts]  # type: ignore[index]
        )
    return Bucket(
        rows=rows,
        labels=labels,
        mask=is_item,
        groups=groups,
        query_weights=weights,
        reward_forms=None,
        starts=[place * num_queries for place in of_groups],
        order=torch.zeros(len(of_groups), num_queries, dtype=torch.int64, device=device),
        step=torch.zeros(1, dtype=torch.int64, device=device),
    )
