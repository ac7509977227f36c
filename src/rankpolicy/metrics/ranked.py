"""What every metric needs of a ranking: items' values in ranking order, ranks, the convention for empty queries."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from rankpolicy.types import Conventions, RankPolicyError


class Ranked(NamedTuple):
    """Rankings cut to the positions that count, and labels as floats with 0 at padded items."""

    rankings: Tensor  # (..., query, position)
    labels: Tensor  # (query, item)
    mask: Tensor  # (query, item)

    def placed(self, values: Tensor) -> Tensor:
        """Values (query, item) of the items in ranking order (..., query, position)."""
        return values.expand(*self.rankings.shape[:-1], values.shape[-1]).gather(-1, self.rankings)

    def gains(self, conventions: Conventions) -> Tensor:
        """Gain of each item (query, item); a padded item gains nothing."""
        return torch.exp2(self.labels) - 1 if conventions.gain == "exp2" else self.labels

    def relevant(self, conventions: Conventions) -> Tensor:
        """1 where an item is relevant, 0 elsewhere (query, item), in the dtype of the labels."""
        return ((self.labels >= conventions.relevant_from) & self.mask).to(self.labels.dtype)

    def discounts(self, num_positions: int | None = None) -> Tensor:
        """1 / log2(1 + rank) of the first positions (position,)."""
        return discounts(self.rankings.shape[-1] if num_positions is None else num_positions, like=self.labels)


def ranked(rankings: Tensor, labels: Tensor, mask: Tensor, *, cutoff: int | None = None) -> Ranked:
    """Check what a metric was given and cut the rankings."""
    if labels.dim() != 2 or labels.shape != mask.shape:
        raise RankPolicyError(
            f"labels and mask must have one shape, (query, item); got {tuple(labels.shape)} and {tuple(mask.shape)}. "
            "For one query add an axis: labels[None], mask[None]."
        )
    if rankings.dim() < 2 or rankings.shape[-2] != labels.shape[0]:
        raise RankPolicyError(
            f"rankings must have the shape (..., query, position) with {labels.shape[0]} queries; "
            f"got {tuple(rankings.shape)}. For one query add an axis: rankings[None]."
        )
    if cutoff is not None and (isinstance(cutoff, bool) or not isinstance(cutoff, int) or cutoff < 1):
        raise RankPolicyError(
            f"cutoff must be a whole number, 1 or more; got {cutoff!r}. Leave it out to count every position."
        )
    as_floats = labels if labels.is_floating_point() else labels.float()
    return Ranked(rankings[..., :cutoff], as_floats.masked_fill(~mask, 0.0), mask)


def discounts(num_positions: int, *, like: Tensor) -> Tensor:
    """1 / log2(1 + rank) for ranks 1 to ``num_positions`` (position,), in the dtype and on the device of ``like``."""
    return 1 / torch.log2(torch.arange(2, num_positions + 2, dtype=like.dtype, device=like.device))


def fill_empty(values: Tensor, is_served: Tensor, conventions: Conventions) -> Tensor:
    """Values (..., query), with the convention's value at queries (query,) that have no relevant item."""
    empty = math.nan if conventions.empty == "skip" else float(conventions.empty)
    return values.masked_fill(~is_served, empty)


def skip_empty(values: Tensor, is_served: Tensor, conventions: Conventions) -> Tensor:
    """Values (..., query), NaN at empty queries when these are skipped: for sums that are 0 there by nature."""
    return values.masked_fill(~is_served, math.nan) if conventions.empty == "skip" else values


def divide_by_ideal(values: Tensor, ideal: Tensor) -> Tensor:
    """values / ideal, and 0 where the ideal is 0."""
    return values / ideal.masked_fill(ideal == 0, 1)


def all_items(num_queries: int, num_items: int) -> Tensor:
    """The mask of queries that all own ``num_items`` items (query, item).

    >>> all_items(1, 2)
    tensor([[True, True]])
    """
    return torch.ones(num_queries, num_items, dtype=torch.bool)


def rank_by_score(scores: Tensor, mask: Tensor) -> Tensor:
    """Rankings by falling score; equal scores keep item order, padded items come last (..., query, item).

    >>> rank_by_score(torch.tensor([[0.1, 0.9, 0.9, 5.0]]), torch.tensor([[True, True, True, False]]))
    tensor([[1, 2, 0, 3]])
    """
    return torch.sort(scores.masked_fill(~mask, -math.inf), dim=-1, descending=True, stable=True).indices


def ranks_of(rankings: Tensor, num_items: int | None = None) -> Tensor:
    """1-based rank of each item (..., item): the inverse of a ranking. Items a prefix leaves out rank just after it.

    >>> ranks_of(torch.tensor([[2, 0, 1]])), ranks_of(torch.tensor([[2]]), num_items=3)
    (tensor([[2, 3, 1]]), tensor([[2, 2, 1]]))
    """
    num_positions = rankings.shape[-1]
    items = num_positions if num_items is None else num_items
    ranks = torch.full((*rankings.shape[:-1], items), num_positions + 1, device=rankings.device)
    return ranks.scatter(-1, rankings, torch.arange(1, num_positions + 1, device=rankings.device).expand_as(rankings))
