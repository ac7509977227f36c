"""Training of one network by several processes, each on its part of every batch.

All workers hold the same weights and draw the same order of queries. Of each batch a worker takes its share of queries; means over queries
and items are divided by the size of the whole batch, so the sum of the workers' gradients is the gradient of the whole batch, and the step
that follows is the one that a single process would take. ``batch_queries`` is the size of the whole batch, whatever the number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from rankpolicy.arrays import (
    Array,
    Generator,
    generator_state,
    permutation,
    random_seed,
    reseed,
    restore_generator,
)
from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.training.network_fit import NetworkFit
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import torch

RENDEZVOUS = (
    "RANKPOLICY_RENDEZVOUS"  # a file where the workers of one machine find each other; torchrun has an address instead
)
_PATIENCE = timedelta(minutes=30)  # for a worker that is slower than the others


@dataclass(frozen=True, slots=True)
class Worker:
    """One of the processes that train a network.

    Parameters
    ----------
    rank
        Its number, from 0; the first writes checkpoints and results.
    num_workers
        How many there are.
    is_restarted
        Whether workers were lost before: training then goes on from the checkpoint.
    """

    rank: int
    num_workers: int
    is_restarted: bool

    @property
    def is_first(self) -> bool:
        """Whether this worker writes files and reports."""
        return self.rank == 0


class LostWorkerError(RankPolicyError):
    """Another worker ended, for a reason that it knows."""


# This worker, within ``data_parallel``; None elsewhere and where there is only one.
current_worker: ContextVar[Worker | None] = ContextVar("current_worker", default=None)


def current_num_workers() -> int:
    """How many processes ``torchrun`` started, or ``rankpolicy train --executor processes:N``; 1 where neither did."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def data_parallel() -> Iterator[Worker]:
    """Within it networks are trained by all processes that ``torchrun`` or Ray Train started, as one process would train them.

    Every process runs the same script on the same data. Gradients travel by NCCL where each process has a GPU, otherwise by gloo. Only the
    worker that ``is_first`` should write files. Torch's processes trust each other without a password: run them on one machine, or in a
    network that nobody else can reach.

    >>> with data_parallel() as worker:  # without torchrun there is one worker
    ...     (worker.rank, worker.num_workers)
    (0, 1)
    """
    num_workers = current_num_workers()
    rank, is_restarted = int(os.environ.get("RANK", "0")), os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
    worker = Worker(rank, num_workers, is_restarted)
    if num_workers == 1 or current_worker.get() is not None:
        yield current_worker.get() or worker
        return
    from torch import distributed

    is_ours = not distributed.is_initialized()  # else by Ray Train, which also ends it
    if is_ours:
        _join(worker)
    token = current_worker.set(worker)
    try:
        yield worker
    finally:
        current_worker.reset(token)
        if is_ours:
            distributed.destroy_process_group()


def _join(worker: Worker) -> None:
    """Meet the other workers."""
    import torch
    from torch import distributed

    local_rank = int(os.environ.get("LOCAL_RANK", worker.rank))
    num_here = int(os.environ.get("LOCAL_WORLD_SIZE", worker.num_workers))
    uses_gpus = torch.cuda.is_available() and torch.cuda.device_count() >= num_here
    if uses_gpus:
        torch.cuda.set_device(local_rank)
    file = os.environ.get(RENDEZVOUS)
    try:
        distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if uses_gpus else "gloo",
            init_method="env://" if file is None else f"file://{file}",
            rank=worker.rank,
            world_size=worker.num_workers,
            timeout=_PATIENCE,
        )
    except (RuntimeError, ValueError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RankPolicyError(
            f"worker {worker.rank} of {worker.num_workers} found no others ({first}). Start it with torchrun."
        ) from None


def for_this_worker(fit: NetworkFit) -> NetworkFit:
    """The same training on this worker's part of every batch."""
    joint = getattr(fit.objective, "exactly", None)
    if joint is not None and not joint().is_separable:
        raise RankPolicyError(
            "several workers need an objective that is a mean over queries; amortized fairness, max_disparity and parity look at all "
            "queries of a batch. Train with one worker."
        )
    values = {field.name: getattr(fit.train, field.name) for field in fields(RaggedTensors)}
    return replace(fit, train=_ShardedTensors(**values))


@dataclass(frozen=True, slots=True, eq=False)
class _ShardedTensors(RaggedTensors):
    """Training data whose batches are this worker's parts of the batches."""

    def shuffled_batches(self, batch_queries: int, *, generator: Generator | None = None) -> Iterator[Batch]:
        worker = current_worker.get()
        assert worker is not None
        assert generator is not None
        rank, num_workers = worker.rank, worker.num_workers
        order = permutation(len(self.offsets) - 1, like=self.labels, generator=generator)
        # Dropout and sampled rankings of this epoch come from a stream of this worker; the common stream goes on where it was.
        common = generator_state(generator)
        reseed(generator, random_seed(generator, like=self.labels) + rank)
        for start in range(0, len(order), batch_queries):
            queries = order[start : start + batch_queries]
            share = queries[len(queries) * rank // num_workers : len(queries) * (rank + 1) // num_workers]
            shard = self.batch(share if len(share) else queries[:1])
            num_items = int((self.offsets[queries + 1] - self.offsets[queries]).sum())
            yield _PartOfBatch(
                **{field.name: getattr(shard, field.name) for field in fields(Batch)},
                num_queries_of_step=len(queries),
                share_of_queries=len(share) / len(queries),
                share_of_items=len(shard.padding.cells) / num_items if len(share) else 0.0,
            )
        restore_generator(generator, common)


@dataclass(frozen=True, slots=True, eq=False)
class _PartOfBatch(Batch):
    """Some queries of a batch; means are this part's share of the means of the whole batch."""

    num_queries_of_step: int = 0
    share_of_queries: float = 1.0
    share_of_items: float = 1.0

    def weights_in_mean(self) -> float | Array:
        return Batch.weights_in_mean(self) * self.share_of_queries

    def mean_over_queries(self, values: Array) -> Array:
        return Batch.mean_over_queries(self, values) * self.share_of_queries

    def mean_over_items(self, values: Array) -> Array:
        return Batch.mean_over_items(self, values) * self.share_of_items


def sum_gradients(optimizer: torch.optim.Optimizer) -> None:
    """Replace the gradients of all weights by their sums over all workers."""
    import torch

    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for weight in weights:
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
    sum_over_workers([weight.grad for weight in weights])


def sum_over_workers(arrays: Sequence[Array]) -> None:
    """Replace tensors or arrays by their sums over all workers, in one message; all workers get the same bits."""
    import torch
    from torch import distributed

    tensors = [torch.as_tensor(array) for array in arrays]  # in the memory of an array
    flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
    with _lost_workers_named():
        distributed.all_reduce(flat)
    start = 0
    with torch.no_grad():
        for tensor in tensors:
            tensor.copy_(flat[start : start + tensor.numel()].view_as(tensor))
            start += tensor.numel()


def decided_by_first(flag: bool) -> bool:
    """What the first worker decided, such as to stop; all workers must do the same."""
    import torch
    from torch import distributed

    decision = torch.tensor([int(flag)])
    with _lost_workers_named():
        distributed.broadcast(decision, 0)
    return bool(decision)


@contextmanager
def _lost_workers_named() -> Iterator[None]:
    try:
        yield
    except RuntimeError:
        raise LostWorkerError("another worker was lost, and training cannot go on without it.") from None
