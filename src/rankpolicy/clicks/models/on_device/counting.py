"""A log counted on the device. Counts are whole numbers, so their sums are exact in any order of addition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from rankpolicy.clicks.log.click_log import NOT_SHOWN, ClickLog
from rankpolicy.clicks.log.pairs import LogView, PairTable
from rankpolicy.types import RankPolicyError

_MULTIPLIER = 0x9E3779B97F4A7C15 - (1 << 64)  # as a signed number; products wrap around
_SHIFT = 29
SESSIONS_OF_A_PART = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceView:
    """A LogView as tensors; its fields are explained there."""

    queries: Tensor
    pairs: Tensor
    is_shown: Tensor
    clicks: Tensor
    counts: Tensor
    num_pairs: int

    @classmethod
    def of(cls, view: LogView, device: torch.device) -> DeviceView:
        """Copy a log to the device."""
        names = ("queries", "pairs", "is_shown", "clicks", "counts")
        arrays = {name: torch.tensor(getattr(view, name), device=device) for name in names}
        return cls(**arrays, num_pairs=view.num_pairs)

    @property
    def num_positions(self) -> int:
        """Length of the longest list."""
        return int(self.pairs.shape[1])

    def parts(self) -> Iterator[DeviceView]:
        """The sessions in order, some at a time, for what takes many times the memory of a view."""
        for start in range(0, max(1, len(self.queries)), SESSIONS_OF_A_PART):
            rows = slice(start, start + SESSIONS_OF_A_PART)
            yield DeviceView(
                queries=self.queries[rows],
                pairs=self.pairs[rows],
                is_shown=self.is_shown[rows],
                clicks=self.clicks[rows],
                counts=self.counts[rows],
                num_pairs=self.num_pairs,
            )


def pairs_on_device(log: ClickLog, device: torch.device) -> tuple[PairTable, DeviceView]:
    """The pairs of a log, and the log in numbers of these (clicks/log/pairs.py), found on the device."""
    queries, items = torch.tensor(log.queries, device=device).long(), torch.tensor(log.items, device=device).long()
    is_shown, num_items = items != NOT_SHOWN, len(log.item_names)
    known, inverse = torch.unique((queries[:, None] * num_items + items)[is_shown], return_inverse=True)
    if len(known) == 0:
        raise RankPolicyError("a click log must show at least one item; this one shows none.")
    pairs = items.fill_(len(known))
    pairs[is_shown] = inverse
    table = PairTable(
        query_names=log.query_names,
        item_names=log.item_names,
        queries=(known // num_items).int().cpu().numpy(),
        items=(known % num_items).int().cpu().numpy(),
    )
    shown = DeviceView(
        queries=queries,
        pairs=pairs,
        is_shown=is_shown,
        clicks=torch.tensor(log.clicks, device=device) != 0,
        counts=torch.tensor(log.counts, device=device).double(),
        num_pairs=len(known),
    )
    return table, shown


def counted(keys: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
    """Distinct keys in ascending order, and for each of the weights its sums by key."""
    found, inverse = torch.unique(keys, return_inverse=True)
    return found, *(sums(inverse, values, len(found)) for values in weights)


def sums(codes: Tensor, counts: Tensor, size: int) -> Tensor:
    """The sum of whole numbers by code 0, 1, ..., size - 1 (size,)."""
    return counts.new_zeros(size).index_add_(0, codes.reshape(-1), counts.reshape(-1))


def distinct_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The first place of each distinct row of whole numbers, and for every row the number of its distinct row.

    As clicks/log/counting.py: by hash, and by comparison of whole rows where two different rows have the same hash.
    """
    hashes = rows.new_zeros(len(rows))
    for column in rows.unbind(1):
        hashes = (hashes ^ column) * _MULTIPLIER
        hashes = hashes ^ ((hashes >> _SHIFT) & ((1 << (64 - _SHIFT)) - 1))
    first, inverse = _first_places(torch.unique(hashes, return_inverse=True)[1])
    if bool((rows[first[inverse]] != rows).any()):
        first, inverse = _first_places(torch.unique(rows, dim=0, return_inverse=True)[1])
    return first, inverse


def _first_places(inverse: Tensor) -> tuple[Tensor, Tensor]:
    places = torch.arange(len(inverse), device=inverse.device)
    first = places.new_full((int(inverse.max()) + 1,), len(inverse))
    return first.scatter_reduce_(0, inverse, places, "amin"), inverse
