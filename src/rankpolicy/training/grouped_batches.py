"""Batches of networks that are trained together: the queries of each group of networks side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from rankpolicy.data.batches import Batch, RaggedTensors


@dataclass(frozen=True, slots=True, eq=False)
class StepBatch:
    """What one step of an ensemble reads."""

    features: (
        Tensor  # (group, row, feature); or those of all items, (item, feature), of which each group reads its ``rows``
    )
    num_items: Sequence[int]  # how many rows of each group are items
    cells: Tensor | None  # (group, row) the cell of each row, one past the last for padding; None where rows are cells
    queries: Batch  # repeated for every network
    num_queries: int  # that each network sees
    rows: Tensor | None = None  # (group, row)

    def padded(self, scores: Tensor) -> Tensor:
        """Scores (member, row) as (member * query, item)."""
        num_items = self.queries.mask.shape[1]
        if self.cells is None:
            return scores.reshape(-1, num_items)
        of_groups = scores.view(len(self.cells), -1, scores.shape[1])
        cells = self.cells[:, None].expand_as(of_groups)
        padded = of_groups.new_zeros(*of_groups.shape[:2], self.num_queries * num_items + 1)
        return padded.scatter(2, cells, of_groups)[:, :, :-1].reshape(-1, num_items)


def shuffled_steps(
    trains: Sequence[RaggedTensors],
    batch_queries: int,
    *,
    generators: Sequence[torch.Generator],
    members_per_group: int,
    num_policies: int,
) -> Iterator[StepBatch]:
    """All queries once, in the random order of each group; all data have as many queries."""
    streams = [
        train.shuffled_batches(batch_queries, generator=generator)
        for train, generator in zip(trains, generators, strict=True)
    ]
    for batches in zip(*streams, strict=True):
        yield _side_by_side(batches, members_per_group, num_policies)


def _side_by_side(batches: Sequence[Batch], members_per_group: int, num_policies: int) -> StepBatch:
    first, num_queries = batches[0], len(batches[0].labels)
    num_rows = max(len(batch.features) for batch in batches)
    num_items = max(batch.mask.shape[1] for batch in batches)

    def wide(values: Tensor) -> Tensor:
        """Values (query, item) with columns for the longest list of all groups, repeated for the networks of a group."""
        return pad(values, (0, num_items - values.shape[1])).repeat(members_per_group, 1)

    def cells(batch: Batch) -> Tensor:
        columns = batch.mask.shape[1]
        numbers = batch.padding.cells // columns * num_items + batch.padding.cells % columns
        return pad(numbers, (0, num_rows - len(numbers)), value=num_queries * num_items)

    queries = replace(
        first,
        features=None,
        labels=torch.cat([wide(batch.labels) for batch in batches]),
        mask=torch.cat([wide(batch.mask) for batch in batches]),
        groups=None if first.groups is None else torch.cat([wide(b.groups) for b in batches if b.groups is not None]),
        query_weights=None
        if first.query_weights is None
        else torch.cat([b.query_weights.repeat(members_per_group) for b in batches if b.query_weights is not None]),
        num_policies=num_policies,
    )
    return StepBatch(
        features=torch.stack([pad(batch.features, (0, 0, 0, num_rows - len(batch.features))) for batch in batches]),
        num_items=[len(batch.features) for batch in batches],
        cells=torch.stack([cells(batch) for batch in batches]),
        queries=queries,
        num_queries=num_queries,
    )
