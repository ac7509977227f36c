"""Batches of texts on a GPU: texts of similar length padded to few shapes, and the network captured once per shape.

Such a network is hundreds of small operations, each of which takes the host longer to start than the device to run. So its way forwards
and its way backwards are two CUDA graphs, and the objective is computed between them, operation by operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rankpolicy.data.batches import Batch
from rankpolicy.data.padding import Padding
from rankpolicy.data.texts.text_pairs import Padded, PaddedPairs, TextPairs
from rankpolicy.models.average import Average
from rankpolicy.training.cuda_graph import GraphedNetwork, capture_all
from rankpolicy.training.device_batches import Program, bucket_of, programs_of, programs_of_epoch
from rankpolicy.training.module_step import member_scores
from rankpolicy.training.network_fit import NetworkFit

_SHORTEST = 16  # tokens; shorter texts count as so long
_MOST_CAPTURED = 24  # shapes, those of most steps; each takes a tenth of a second
_LEAST_FILLED = 0.5  # the first query of a bucket's last step, relative to that of its first


@dataclass(slots=True, kw_only=True, eq=False)
class TextProgram:
    """A step over queries of a bucket whose texts are padded to the same numbers of tokens."""

    program: Program
    longest_query: int
    longest_item: int
    queries: Tensor  # (query,) the queries of the step
    graph: GraphedNetwork | None = None


class _Cells(Padding):
    """Of rows that are cells already."""

    __slots__ = ()

    def pad(self, flat: Tensor) -> Tensor:
        return flat.reshape(-1, self.mask.shape[1])


class DeviceTexts:
    """The texts of a fit, which lie on the device, and the graphs of its network."""

    def __init__(self, fit: NetworkFit) -> None:
        assert isinstance(fit.train.features, TextPairs)
        self.fit, self.pairs, self.generator = fit, fit.train.features, fit.generator
        self.programs: list[TextProgram] = []
        lengths = self.pairs.items.lengths[self.pairs.item_of_pair].cpu().numpy()
        longest = np.maximum.reduceat(lengths, fit.train.offsets[:-1])  # of the items of each query
        for queries in text_buckets(np.diff(fit.train.offsets), longest, fit.settings.batch_queries):
            bucket = bucket_of([fit.train], [queries], [0])
            texts, longest_query = self.pairs.queries, 0
            if texts is not None:
                longest_query = int(texts.lengths[self.pairs.query_of_pair[bucket.rows[:, 0]]].max())
            self.programs += [
                TextProgram(
                    program=program,
                    longest_query=longest_query,
                    longest_item=int(longest[queries].max()),
                    queries=torch.zeros(program.num_queries, dtype=torch.int64, device=bucket.order.device),
                )
                for program in programs_of(bucket, fit.settings.batch_queries)
            ]
        if fit.train.labels.is_cuda:
            self.capture()

    @staticmethod
    def serve(network: nn.Module, features: object) -> bool:
        """Whether a network can be trained on such batches: it reads padded texts without a look at the device."""
        members = list(network.members) if isinstance(network, Average) else [network]
        return isinstance(features, TextPairs) and all(
            getattr(member, "reads_padded_pairs", False) for member in members
        )

    def texts(self, program: TextProgram) -> PaddedPairs:
        """What the network reads of the queries of a program."""
        pairs, rows = self.pairs, program.program.bucket.rows.index_select(0, program.queries)
        flat = rows.view(-1)
        numbers = torch.arange(len(flat), device=flat.device)
        items = pairs.items.padded(pairs.item_of_pair[flat], longest=program.longest_item)
        queries = None
        if pairs.queries is not None:
            of_queries = pairs.queries.padded(pairs.query_of_pair[rows[:, 0]], longest=program.longest_query)
            queries = Padded(*of_queries, numbers // rows.shape[1])
        return PaddedPairs(queries, Padded(*items, numbers), None if pairs.side is None else pairs.side[flat])

    def batch(self, program: TextProgram) -> Batch:
        """The next batch of a program; its features are texts, or the graphs of the network on them."""
        bucket = program.program.bucket
        program.queries.copy_(program.program.next_queries()[0])
        mask = bucket.mask.index_select(0, program.queries)
        return Batch(
            features=self.texts(program) if program.graph is None else program.graph,
            labels=bucket.labels.index_select(0, program.queries),
            mask=mask,
            padding=_Cells(mask, program.queries),
            groups=None if bucket.groups is None else bucket.groups.index_select(0, program.queries),
            query_weights=None if bucket.query_weights is None else bucket.query_weights[program.queries],
        )

    def shuffled_batches(self, epoch: int) -> Iterator[Batch]:
        """All queries once. Each batch must be used before the next one is made: they share memory."""
        by_program = {id(program.program): program for program in self.programs}
        programs = [program.program for program in self.programs]
        for program in programs_of_epoch(programs, epoch=epoch, generators=[self.generator]):
            yield self.batch(by_program[id(program)])

    def capture(self) -> None:
        """Make graphs of the network for the programs of most steps; where that fails it is run operation by operation."""
        network = self.fit.network.train()
        weights = [weight for weight in network.parameters() if weight.requires_grad]

        def graph(program: TextProgram, pool: Any) -> GraphedNetwork:
            return GraphedNetwork(
                lambda: member_scores(network, self.texts(program)), weights, generator=self.generator, pool=pool
            )

        most_used = sorted(self.programs, key=lambda program: -program.program.times)[:_MOST_CAPTURED]
        capture_all(most_used, graph, generators=[self.generator])


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
    for index in range(batch_queries, len(order), batch_queries):
        first, start = order[index], order[edges[-1]]
        if kinds[first] < kinds[start] or sizes[first] < _LEAST_FILLED * sizes[start]:
            edges.append(index)
    return [order[start:end] for start, end in pairwise([*edges, len(order)])]
