"""The mixture policy: a finite set of rankings of each query, each with its probability."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rankpolicy.display import short_repr
from rankpolicy.metrics.ranked import full_rank_weights
from rankpolicy.types import RankPolicyError

TOLERANCE = 1e-4  # of the sum of a query's weights: float32 weights of many rankings miss 1 by this much


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """P(ranking) = sum of the weights of the rankings equal to it.

    Parameters
    ----------
    rankings
        (ranking, query, position). Queries may have fewer items than positions (padded items come last) and fewer rankings than others
        (fill up with any ranking of weight 0).
    weights
        Probability of each ranking (ranking, query), 0 or more, summing to 1 over the rankings of a query.
    mask
        True where padded arrays hold a real item (query, item).

    >>> rankings, weights = torch.tensor([[[0, 1, 2]], [[1, 0, 2]]]), torch.tensor([[0.75], [0.25]])
    >>> policy = Mixture(rankings, weights, torch.ones(1, 3, dtype=torch.bool))
    >>> policy.log_prob(torch.tensor([[1, 0, 2]])).exp(), policy.mode()
    (tensor([0.2500]), tensor([[0, 1, 2]]))
    >>> policy.exposure(torch.tensor([1.0, 0.6, 0.5]))  # 0.75 * 1 + 0.25 * 0.6, and so on
    tensor([[0.9000, 0.7000, 0.5000]])
    """

    rankings: Tensor  # (ranking, query, position)
    weights: Tensor  # (ranking, query)
    mask: Tensor  # (query, item) bool

    __repr__ = short_repr

    def __post_init__(self) -> None:
        _check(self.rankings, self.weights, self.mask)

    def sample(
        self, num_samples: int, *, cutoff: int | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        """Rankings (sample, query, position) drawn from the mixture.

        Parameters
        ----------
        num_samples
            Rankings per query.
        cutoff
            How many positions to return; by default all.
        generator
            Source of randomness; by default torch's own.
        """
        chosen = torch.multinomial(self.weights.T, num_samples, replacement=True, generator=generator).T
        return self.rankings[chosen, torch.arange(len(self.mask), device=chosen.device), :cutoff]

    def log_prob(self, rankings: Tensor, *, cutoff: int | None = None) -> Tensor:
        """Log probability (..., query) of rankings; -inf for those that are not in the mixture.

        Parameters
        ----------
        rankings
            Whole rankings or their first positions (..., query, position).
        cutoff
            How many positions count; by default all that ``rankings`` holds.
        """
        placed = rankings[..., :cutoff]
        depth = placed.shape[-1]
        is_padding = torch.arange(depth, device=placed.device) >= self.mask.sum(-1, keepdim=True)
        total = torch.zeros(placed.shape[:-1], dtype=self.weights.dtype, device=placed.device)
        for ranking, weight in zip(self.rankings, self.weights, strict=True):
            total += weight * ((placed == ranking[:, :depth]) | is_padding).all(-1)
        return total.log()

    def mode(self) -> Tensor:
        """The most probable ranking (query, position); the first of several."""
        best = self.log_prob(self.rankings).argmax(0)
        return self.rankings[best, torch.arange(len(self.mask), device=best.device)]

    def exposure(self, rank_weights: Tensor | None = None, *, cutoff: int | None = None) -> Tensor:
        """Expected weight of each item's rank (query, item), exact.

        Parameters
        ----------
        rank_weights
            Weight of each rank (position,), 0 past its end; by default 1 / log2(1 + rank), the position bias of DCG.
        cutoff
            Ranks past this weigh 0; by default none do.
        """
        weights = full_rank_weights(rank_weights, like=self.mask, cutoff=cutoff).to(self.weights.dtype)
        return (self.weights[..., None] * ranking_exposure(self.rankings, self.mask, weights)).sum(0)


def ranking_exposure(rankings: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
    """Exposure (..., query, item) that each ranking gives: the bias at the item's position, 0 for items that are not ranked.

    Parameters
    ----------
    rankings
        Whole rankings or their first positions (..., query, position).
    mask
        True where padded arrays hold a real item (query, item).
    bias
        Position bias (position,), 0 past its end.

    >>> ranking_exposure(torch.tensor([[2, 0, 1]]), torch.ones(1, 3, dtype=torch.bool), torch.tensor([1.0, 0.6, 0.5]))
    tensor([[0.6000, 0.5000, 1.0000]])
    """
    num_positions = rankings.shape[-1]
    reaching = bias[:num_positions]
    seen = torch.nn.functional.pad(reaching, (0, num_positions - len(reaching)))
    exposure = torch.zeros(*rankings.shape[:-1], mask.shape[-1], dtype=bias.dtype, device=rankings.device)
    return exposure.scatter(-1, rankings, seen.expand(rankings.shape)).masked_fill(~mask, 0.0)


def _check(rankings: Tensor, weights: Tensor, mask: Tensor) -> None:
    if rankings.ndim != 3 or weights.shape != rankings.shape[:2] or mask.shape != rankings.shape[1:]:
        raise RankPolicyError(
            "rankings must be (ranking, query, position), weights (ranking, query) and mask (query, item) with as many "
            f"positions as items; got {tuple(rankings.shape)}, {tuple(weights.shape)} and {tuple(mask.shape)}. "
            "For one query add an axis: rankings[:, None], weights[:, None], mask[None]."
        )
    if not weights.is_floating_point() or mask.dtype != torch.bool:
        raise RankPolicyError(f"weights must be floating point and mask bool; got {weights.dtype} and {mask.dtype}.")
    items = torch.arange(rankings.shape[-1], device=rankings.device)
    if not torch.equal(rankings.sort(-1).values, items.expand(rankings.shape)):
        raise RankPolicyError(
            f"every ranking must hold each of the {len(items)} item indices once, padded items last; got one that does not."
        )
    in_front = items < mask.sum(-1, keepdim=True)
    if not torch.equal(mask.expand(rankings.shape).gather(-1, rankings), in_front.expand(rankings.shape)):
        raise RankPolicyError(
            "padded items must come last in every ranking; got one with a padded item before a real one."
        )
    total = weights.sum(0)
    if not (weights >= 0).all() or not ((total - 1).abs() <= TOLERANCE).all():
        raise RankPolicyError(
            "weights must be 0 or more and sum to 1 over the rankings of each query; "
            f"the lowest weight is {weights.min():g}, the sums run from {total.min():g} to {total.max():g}. "
            "Divide by the sums: weights / weights.sum(0)."
        )
