"""Batches of networks that are trained together: the queries of each group of networks side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.data.padding import Padding
from rankpolicy.data.rows import NetworkRows
from rankpolicy.data.texts.text_pairs import PaddedPairs
from rankpolicy.training.captured_network import CapturedNetwork

NO_PADDING = Padding(torch.ones(0, 0, dtype=torch.bool), torch.zeros(0, dtype=torch.int64))  # where rows are cells


@dataclass(frozen=True, slots=True, eq=False)
class StepBatch:
    """What one step reads.

    Parameters
    ----------
    features
        What the networks read: a tensor (group, row, feature), or of a single group anything that networks read.
    num_items
        How many rows of each group are items.
    padding
        How the scores (row,) of a network become (query, item); None where rows are cells already.
    cells
        The cell of each row of each group (group, row), one past the last for rows that are no items; None for a single group.
    queries
        The queries, repeated for every network.
    num_queries
        How many queries each network sees.
    rows
        Where ``features`` are those of all items: the rows of them that each group reads (group, row).
    captured
        Where the network has been captured with what it reads: its graphs. There are no ``features`` then.
    """

    features: Tensor | NetworkRows | PaddedPairs | None
    num_items: Sequence[int]
    padding: Padding | None
    cells: Tensor | None
    queries: Batch
    num_queries: int
    rows: Tensor | None = None
    captured: CapturedNetwork | None = None

    def padded(self, scores: Tensor) -> Tensor:
        """Scores (member, row) as (member * query, item).

        Parameters
        ----------
        scores
            Scores of all rows by each network.
        """
        num_items = self.queries.mask.shape[1]
        if self.cells is not None:
            of_groups = scores.view(len(self.cells), -1, scores.shape[1])
            cells = self.cells[:, None].expand_as(of_groups)
            padded = of_groups.new_zeros(*of_groups.shape[:2], self.num_queries * num_items + 1)
            return padded.scatter(2, cells, of_groups)[:, :, :-1].reshape(-1, num_items)
        return scores.reshape(-1, num_items) if self.padding is None else self.padding.pad(scores)


def shuffled_steps(
    trains: Sequence[RaggedTensors],
    batch_queries: int,
    *,
    generators: Sequence[torch.Generator],
    members_per_group: int,
    num_policies: int,
) -> Iterator[StepBatch]:
    """All queries once, in the random order of each group.

    Parameters
    ----------
    trains
        The training data of each group.
    batch_queries
        Queries per step and network.
    generators
        Sources of the random orders, one per group.
    members_per_group
        How many networks read the batches of a group.
    num_policies
        How many policies there are in all groups.
    """
    streams = [
        train.shuffled_batches(batch_queries, generator=generator)
        for train, generator in zip(trains, generators, strict=True)
    ]
    for batches in zip(*streams, strict=True):
        yield _side_by_side(batches, members_per_group, num_policies)


def _side_by_side(batches: Sequence[Batch], members_per_group: int, num_policies: int) -> StepBatch:
    first = batches[0]
    if len(batches) == 1:
        features = first.features[None] if isinstance(first.features, Tensor) else first.features
        queries = replace(first.repeated(members_per_group), num_policies=num_policies)
        return StepBatch(features, [len(first.features)], first.padding, None, queries, first.num_queries_of_step)
    num_rows, num_items = (
        max(sizes) for sizes in zip(*((len(b.features), b.mask.shape[1]) for b in batches), strict=True)
    )
    num_queries = len(first.labels)
    cells = torch.stack(
        [
            pad(
                b.padding.cells // b.mask.shape[1] * num_items + b.padding.cells % b.mask.shape[1],
                (0, num_rows - len(b.features)),
                value=num_queries * num_items,
            )
            for b in batches
        ]
    )
    wide = [
        replace(
            b,
            labels=pad(b.labels, (0, num_items - b.mask.shape[1])),
            mask=pad(b.mask, (0, num_items - b.mask.shape[1])),
            groups=None if b.groups is None else pad(b.groups, (0, num_items - b.mask.shape[1])),
        ).repeated(members_per_group)
        for b in batches
    ]
    queries = Batch(
        features=None,
        labels=torch.cat([b.labels for b in wide]),
        mask=torch.cat([b.mask for b in wide]),
        padding=first.padding,
        groups=None if first.groups is None else torch.cat([b.groups for b in wide if b.groups is not None]),
        query_weights=None
        if first.query_weights is None
        else torch.cat([b.query_weights for b in wide if b.query_weights is not None]),
        num_policies=num_policies,
    )
    features = torch.stack([pad(b.features, (0, 0, 0, num_rows - len(b.features))) for b in batches])
    return StepBatch(features, [len(b.features) for b in batches], None, cells, queries, num_queries)
