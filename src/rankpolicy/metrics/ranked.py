"""What metrics share: checked input, labels in ranking order, ranks and discounts, and the value of queries without relevant items."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from rankpolicy.types import Conventions, RankPolicyError

if TYPE_CHECKING:
    from torch import Tensor

# Torch is imported inside the functions that create tensors: parsing a reward and compiled metrics do not load it.


class JudgedItems(NamedTuple):
    """The items of queries and their labels."""

    labels: Tensor  # labels as floats (query, item), 0 at padded items
    mask: Tensor  # True where an item is real (query, item)

    def gains(self, conventions: Conventions) -> Tensor:
        """Gain of each item (query, item); 0 at padded items."""
        return self.labels.exp2() - 1 if conventions.gain == "exp2" else self.labels

    def relevant(self, conventions: Conventions) -> Tensor:
        """1 where an item is relevant, 0 elsewhere (query, item), in the dtype of the labels."""
        return ((self.labels >= conventions.relevant_from) & self.mask).to(self.labels.dtype)


class Ranked(NamedTuple):
    """Rankings of judged items, cut to the positions that count."""

    rankings: Tensor  # items in ranked order (..., query, position)
    items: JudgedItems  # the items of each query

    def placed(self, values: Tensor) -> Tensor:
        """Values (query, item) of the items in ranking order (..., query, position)."""
        return values.expand(*self.rankings.shape[:-1], values.shape[-1]).gather(-1, self.rankings)

    def ranks(self) -> Tensor:
        """1, 2, ... (position,)."""
        return rank_numbers(self.rankings.shape[-1], like=self.items.labels)

    def discounts(self) -> Tensor:
        """1 / log2(1 + rank) (position,)."""
        return discounts(self.rankings.shape[-1], like=self.items.labels)


def judged_items(labels: Tensor, mask: Tensor, *, cutoff: int | None = None) -> JudgedItems:
    """Labels and mask, checked, with a check of the cutoff that will be applied to their rankings."""
    if labels.dim() != 2 or labels.shape != mask.shape:
        raise RankPolicyError(
            f"labels and mask must have one shape, (query, item); got {tuple(labels.shape)} and {tuple(mask.shape)}. "
            "For one query add an axis: labels[None], mask[None]."
        )
    if cutoff is not None and (isinstance(cutoff, bool) or not isinstance(cutoff, int) or cutoff < 1):
        raise RankPolicyError(
            f"cutoff must be a whole number, 1 or more; got {cutoff!r}. Leave it out to count every position."
        )
    as_floats = labels if labels.is_floating_point() else labels.float()
    return JudgedItems(as_floats.masked_fill(~mask, 0.0), mask)


def ranked(rankings: Tensor, labels: Tensor, mask: Tensor, *, cutoff: int | None = None) -> Ranked:
    """The arguments of a metric, checked, with rankings cut to the first ``cutoff`` positions."""
    items = judged_items(labels, mask, cutoff=cutoff)
    if rankings.dim() < 2 or rankings.shape[-2] != labels.shape[0]:
        raise RankPolicyError(
            f"rankings must have the shape (..., query, position) with {labels.shape[0]} queries; "
            f"got {tuple(rankings.shape)}. For one query add an axis: rankings[None]."
        )
    return Ranked(rankings[..., :cutoff], items)


def rank_numbers(num_positions: int, *, like: Tensor) -> Tensor:
    """1, 2, ..., ``num_positions`` (position,), in the dtype and on the device of ``like``."""
    import torch

    return torch.arange(1, num_positions + 1, dtype=like.dtype, device=like.device)


def discounts(num_positions: int, *, like: Tensor) -> Tensor:
    """1 / log2(1 + rank) for ranks 1 to ``num_positions`` (position,), in the dtype and on the device of ``like``."""
    import torch

    return 1 / torch.arange(2, num_positions + 2, dtype=like.dtype, device=like.device).log2()


def cut_weights(rank_weights: Tensor, cutoff: int | None) -> Tensor:
    """Rank weights (position,) with 0 past the cutoff."""
    cut = rank_weights.clone()
    cut[len(cut) if cutoff is None else cutoff :] = 0
    return cut


def full_rank_weights(rank_weights: Tensor | None, *, like: Tensor, cutoff: int | None = None) -> Tensor:
    """One float64 weight per position of a policy's arrays ``like`` (query, item): 1 / log2(1 + rank) unless given, 0 past the cutoff.

    >>> import torch
    >>> full_rank_weights(None, like=torch.zeros(1, 4), cutoff=2)
    tensor([1.0000, 0.6309, 0.0000, 0.0000], dtype=torch.float64)
    >>> full_rank_weights(torch.tensor([1.0]), like=torch.zeros(1, 2))
    tensor([1., 0.], dtype=torch.float64)
    """
    import torch

    num_positions = like.shape[-1]
    if rank_weights is None:
        weights = discounts(num_positions, like=torch.empty(0, dtype=torch.float64, device=like.device))
    elif rank_weights.ndim != 1:
        raise RankPolicyError(f"rank_weights must be a vector (position,); got shape {tuple(rank_weights.shape)}.")
    else:
        weights = rank_weights.to(device=like.device, dtype=torch.float64)[:num_positions]
    weights = torch.nn.functional.pad(weights, (0, num_positions - len(weights)))
    if cutoff is not None:
        weights = weights.clone()
        weights[cutoff:] = 0
    return weights


def fill_empty(values: Tensor, has_relevant: Tensor, conventions: Conventions) -> Tensor:
    """Values (..., query), replaced by the value of ``conventions.empty`` where a query (query,) has no relevant item."""
    empty = math.nan if conventions.empty == "skip" else float(conventions.empty)
    return values.masked_fill(~has_relevant, empty)


def skip_empty(values: Tensor, has_relevant: Tensor, conventions: Conventions) -> Tensor:
    """Values (..., query), NaN at queries without relevant items if these are skipped; for sums, which are 0 there anyway."""
    return values.masked_fill(~has_relevant, math.nan) if conventions.empty == "skip" else values


def divide_by_ideal(values: Tensor, ideal: Tensor) -> Tensor:
    """values / ideal, and 0 where the ideal is 0."""
    return values / ideal.masked_fill(ideal == 0, 1)


def all_items(num_queries: int, num_items: int) -> Tensor:
    """The mask of queries that all have the same number of items, without padding (query, item).

    Parameters
    ----------
    num_queries
        Number of queries.
    num_items
        Number of items of each query.

    >>> all_items(1, 2)
    tensor([[True, True]])
    """
    import torch

    return torch.ones(num_queries, num_items, dtype=torch.bool)


def rank_by_score(scores: Tensor, mask: Tensor) -> Tensor:
    """Rankings by descending score (..., query, item); equal scores keep item order, padded items come last.

    Parameters
    ----------
    scores
        Score of each item (..., query, item); higher is better.
    mask
        True where an item is real (query, item).

    >>> import torch
    >>> rank_by_score(torch.tensor([[0.1, 0.9, 0.9, 5.0]]), torch.tensor([[True, True, True, False]]))
    tensor([[1, 2, 0, 3]])
    """
    return scores.masked_fill(~mask, -math.inf).sort(dim=-1, descending=True, stable=True).indices


def ranks_of(rankings: Tensor, num_items: int | None = None) -> Tensor:
    """1-based rank of each item (..., item): the inverse of a ranking. Items that a prefix leaves out rank just after it.

    Parameters
    ----------
    rankings
        Items in ranked order (..., position).
    num_items
        Number of items of each query, for rankings that are prefixes; None (the default) is the number of positions.

    >>> import torch
    >>> ranks_of(torch.tensor([[2, 0, 1]])), ranks_of(torch.tensor([[2]]), num_items=3)
    (tensor([[2, 3, 1]]), tensor([[2, 2, 1]]))
    """
    num_positions = rankings.shape[-1]
    items = num_positions if num_items is None else num_items
    ranks = rankings.new_full((*rankings.shape[:-1], items), num_positions + 1)
    return ranks.scatter(-1, rankings, rank_numbers(num_positions, like=rankings).expand_as(rankings))


HIGHEST_EXPONENT = 1000  # of 2^label in double precision


def check_exp2_gain(highest: float, conventions: Conventions) -> None:
    """Refuse labels whose gain 2^label - 1 is out of the range of numbers, so that no query silently becomes NaN."""
    if conventions.gain == "exp2" and highest > HIGHEST_EXPONENT:
        raise RankPolicyError(
            f"with the gain 2^label - 1 labels must be at most {HIGHEST_EXPONENT}; the highest is {highest:g}. Map labels to "
            "small grades, or take them as gains.",
            python="Pass conventions=Conventions(gain='linear').",
            command_line="Use --gain linear.",
        )
