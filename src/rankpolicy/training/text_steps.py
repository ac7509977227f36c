"""Training steps of text networks on a GPU: texts of similar length in batches of few shapes, the network captured once per shape.

Such a network is hundreds of small operations, each of which takes the host longer to start than the device to run. So its way forwards
and its way backwards are two CUDA graphs, and the objective is computed between them, operation by operation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.data.texts.text_pairs import Padded, PaddedPairs, TextPairs
from rankpolicy.models.average import Average
from rankpolicy.training.batches import NO_PADDING, StepBatch
from rankpolicy.training.captured_network import CapturedNetwork
from rankpolicy.training.resident import Bucket, Program, bucket_of, new_program

logger = logging.getLogger("rankpolicy.training")

_SHORTEST = 16  # tokens; shorter texts count as so long
_MOST_CAPTURED = 24  # shapes, those of most steps; each takes a tenth of a second
_LEAST_FILLED = 0.5  # the first query of a bucket's last step, relative to that of its first


@dataclass(slots=True, kw_only=True, eq=False)
class TextProgram:
    """A step over queries of a bucket whose texts are padded to the same lengths.

    Parameters
    ----------
    program
        Which queries it takes.
    longest_query, longest_item
        How many tokens texts are padded to.
    queries
        The queries of the step (query,).
    captured
        The network in CUDA graphs; None: it is run operation by operation.
    """

    program: Program
    longest_query: int
    longest_item: int
    queries: Tensor
    captured: CapturedNetwork | None = None


class TextSteps:
    """The steps of an epoch over texts on the device.

    Parameters
    ----------
    train
        The training data.
    batch_queries
        Queries per step.
    generator
        Source of random orders.
    num_networks
        How many networks read each batch.
    """

    def __init__(
        self, train: RaggedTensors, batch_queries: int, *, generator: torch.Generator, num_networks: int
    ) -> None:
        assert isinstance(train.features, TextPairs)
        self.pairs, self.generator, self.num_networks = train.features, generator, num_networks
        self.programs: list[TextProgram] = []
        longest = _longest_items(train)
        for queries in text_buckets(np.diff(train.offsets), longest, batch_queries):
            self._add_bucket(bucket_of([train], [queries], [0]), batch_queries, int(longest[queries].max()))

    def _add_bucket(self, bucket: Bucket, batch_queries: int, tokens: int) -> None:
        times, rest = divmod(bucket.order.shape[1], batch_queries)
        programs = [new_program(bucket, batch_queries, times=times)] if times else []
        if rest:
            programs.append(new_program(bucket, rest, is_rest=True))
        of_queries = self.pairs.queries
        longest = (
            0 if of_queries is None else int(of_queries.lengths[self.pairs.query_of_pair[bucket.rows[:, 0]]].max())
        )
        self.programs += [
            TextProgram(
                program=program,
                longest_query=longest,
                longest_item=tokens,
                queries=torch.zeros(program.num_queries, dtype=torch.int64, device=bucket.order.device),
            )
            for program in programs
        ]

    @staticmethod
    def serve(network: nn.Module, features: object) -> bool:
        """Whether a network can be trained in such steps: it reads padded texts without a look at the device.

        Parameters
        ----------
        network
            The network, or an ``Average`` of several.
        features
            What it reads.
        """
        members = list(network.members) if isinstance(network, Average) else [network]
        return isinstance(features, TextPairs) and all(
            getattr(member, "reads_padded_pairs", False) for member in members
        )

    def texts(self, program: TextProgram) -> PaddedPairs:
        """What the network reads of the queries of a program.

        Parameters
        ----------
        program
            One of ``programs``.
        """
        pairs, rows = self.pairs, program.program.bucket.rows.index_select(0, program.queries)
        flat = rows.view(-1)
        places = torch.arange(len(flat), device=flat.device)
        items = pairs.items.padded(pairs.item_of_pair[flat], longest=program.longest_item)
        queries = None
        if pairs.queries is not None:
            of_queries = pairs.queries.padded(pairs.query_of_pair[rows[:, 0]], longest=program.longest_query)
            queries = Padded(*of_queries, places // rows.shape[1])
        return PaddedPairs(queries, Padded(*items, places), None if pairs.side is None else pairs.side[flat])

    def batch(self, program: TextProgram) -> StepBatch:
        """What the next step of a program reads.

        Parameters
        ----------
        program
            One of ``programs``.
        """
        bucket = program.program.bucket
        program.queries.copy_(program.program.next_queries()[0])
        queries = Batch(
            features=None,
            labels=bucket.labels.index_select(0, program.queries),
            mask=bucket.mask.index_select(0, program.queries),
            padding=NO_PADDING,
            groups=None if bucket.groups is None else bucket.groups.index_select(0, program.queries),
            query_weights=None if bucket.query_weights is None else bucket.query_weights[program.queries],
        ).repeated(self.num_networks)
        num_rows = program.program.num_queries * bucket.rows.shape[1]
        features = self.texts(program) if program.captured is None else None
        step = StepBatch(features, [num_rows], None, None, queries, program.program.num_queries)
        return step if program.captured is None else replace(step, captured=program.captured)

    def run_epoch(self, step: Callable[[StepBatch], None], *, epoch: int) -> None:
        """Take all steps of an epoch.

        Parameters
        ----------
        step
            What is done with each batch.
        epoch
            How many epochs are done; the order of buckets depends on it alone.
        """
        for bucket in {id(own.program.bucket): own.program.bucket for own in self.programs}.values():
            bucket.shuffle([self.generator])
        numbers = np.repeat(np.arange(len(self.programs)), [own.program.times for own in self.programs])
        for number in np.random.default_rng(epoch).permutation(numbers):
            step(self.batch(self.programs[number]))

    def capture(self, scores: Callable[[PaddedPairs], Tensor], weights: Sequence[Tensor]) -> None:
        """Make CUDA graphs of the network for each program; where that fails it is run operation by operation.

        Parameters
        ----------
        scores
            The network: scores (member, row) of texts.
        weights
            Its weights that are trained.
        """
        drawn = self.generator.get_state()
        pool = torch.cuda.graph_pool_handle()
        try:
            for program in sorted(self.programs, key=lambda own: -own.program.times)[:_MOST_CAPTURED]:
                network = partial(self._scores_of, program, scores)
                program.captured = CapturedNetwork(network, weights, generator=self.generator, pool=pool)
        except RuntimeError as error:
            for program in self.programs:
                program.captured = None
            torch.cuda.synchronize()
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            logger.info("training runs without a CUDA graph: %s", reason)
        self.generator.set_state(drawn)

    def _scores_of(self, program: TextProgram, scores: Callable[[PaddedPairs], Tensor]) -> Tensor:
        return scores(self.texts(program))


def _longest_items(train: RaggedTensors) -> NDArray[np.int64]:
    """The number of tokens of the longest item text of each query (query,)."""
    assert isinstance(train.features, TextPairs)
    lengths = train.features.items.lengths[train.features.item_of_pair].cpu().numpy()
    return np.maximum.reduceat(lengths, train.offsets[:-1])


def text_buckets(sizes: NDArray[np.int64], longest: NDArray[np.int64], batch_queries: int) -> list[NDArray[np.int64]]:
    """The queries of each bucket: those whose longest texts have similar length, and of these such with similar numbers of items.

    Buckets are whole steps, so that only the last may have a step that is not full.

    >>> sizes, longest = np.array([5, 9, 2, 8, 2, 9]), np.array([100, 20, 30, 17, 25, 90])
    >>> [queries.tolist() for queries in text_buckets(sizes, longest, 2)]
    [[5, 0], [1, 3], [2, 4]]
    """
    kinds = np.maximum(_SHORTEST, 2 ** np.ceil(np.log2(np.maximum(longest, 1))).astype(np.int64))
    order = np.lexsort((-sizes, -kinds))
    edges = [0]
    for place in range(batch_queries, len(order), batch_queries):
        first, start = order[place], order[edges[-1]]
        if kinds[first] < kinds[start] or sizes[first] < _LEAST_FILLED * sizes[start]:
            edges.append(place)
    return [order[start:end] for start, end in pairwise([*edges, len(order)])]
