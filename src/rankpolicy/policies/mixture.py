"""The mixture policy: a finite set of rankings of each query, each with its probability."""

from __future__ import annotations

import numpy as np

from rankpolicy.arrays import (
    Array,
    Generator,
    alike,
    arange,
    as_like,
    choices,
    gather,
    is_floating,
    masked_fill,
    namespace,
    resized,
    scatter,
    zeros,
)
from rankpolicy.display import frozen_value
from rankpolicy.metrics.ranked import full_rank_weights
from rankpolicy.types import RankPolicyError

TOLERANCE = 1e-4  # of the sum of a query's weights: float32 weights of many rankings miss 1 by this much


@frozen_value()
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

    >>> rankings, weights = np.array([[[0, 1, 2]], [[1, 0, 2]]]), np.array([[0.75], [0.25]])
    >>> policy = Mixture(rankings, weights, np.ones((1, 3), bool))
    >>> np.exp(policy.log_prob(np.array([[1, 0, 2]]))), policy.mode()
    (array([0.25]), array([[0, 1, 2]]))
    >>> policy.exposure(np.array([1.0, 0.6, 0.5]))  # 0.75 * 1 + 0.25 * 0.6, and so on
    array([[0.9, 0.7, 0.5]])
    """

    rankings: Array  # (ranking, query, position)
    weights: Array  # (ranking, query)
    mask: Array  # (query, item) bool

    def __post_init__(self) -> None:
        held = alike(self.rankings, self.weights, self.mask)
        _check(*held)
        for name, array in zip(("rankings", "weights", "mask"), held, strict=True):
            object.__setattr__(self, name, array)

    def sample(self, num_samples: int, *, cutoff: int | None = None, generator: Generator | None = None) -> Array:
        """Rankings (sample, query, position) drawn from the mixture.

        Parameters
        ----------
        num_samples
            Rankings per query.
        cutoff
            How many positions to return; by default all.
        generator
            Source of randomness: a ``torch.Generator`` for tensors, a ``numpy.random.Generator`` for arrays; by default an unseeded one.
        """
        chosen = choices(self.weights.T, num_samples, generator=generator)
        return self.rankings[chosen, arange(len(self.mask), like=chosen), :cutoff]

    def log_prob(self, rankings: Array, *, cutoff: int | None = None) -> Array:
        """Log probability (..., query) of rankings; -inf for those that are not in the mixture.

        Parameters
        ----------
        rankings
            Whole rankings or their first positions (..., query, position).
        cutoff
            How many positions count; by default all that ``rankings`` holds.
        """
        mixed, weights, mask, placed = alike(self.rankings, self.weights, self.mask, rankings[..., :cutoff])
        depth = placed.shape[-1]
        is_padding = arange(depth, like=placed) >= mask.sum(-1, keepdims=True)
        total = zeros(placed.shape[:-1], like=weights)
        for ranking, weight in zip(mixed, weights, strict=True):
            total += weight * ((placed == ranking[:, :depth]) | is_padding).all(-1)
        with np.errstate(divide="ignore"):  # of rankings that are not in the mixture
            return namespace(total).log(total)

    def mode(self) -> Array:
        """The most probable ranking (query, position); the first of several."""
        best = self.log_prob(self.rankings).argmax(0)
        return self.rankings[best, arange(len(self.mask), like=best)]

    def exposure(self, rank_weights: Array | None = None, *, cutoff: int | None = None) -> Array:
        """Expected weight of each item's rank (query, item), exact.

        Parameters
        ----------
        rank_weights
            Weight of each rank (position,), 0 past its end; by default 1 / log2(1 + rank), the position bias of DCG.
        cutoff
            Ranks past this weigh 0; by default none do.
        """
        weights = as_like(full_rank_weights(rank_weights, like=self.mask, cutoff=cutoff), self.weights)
        return (self.weights[..., None] * ranking_exposure(self.rankings, self.mask, weights)).sum(0)


def ranking_exposure(rankings: Array, mask: Array, bias: Array) -> Array:
    """Exposure (..., query, item) that each ranking gives: the bias at the item's position, 0 for items that are not ranked.

    Parameters
    ----------
    rankings
        Whole rankings or their first positions (..., query, position).
    mask
        True where padded arrays hold a real item (query, item).
    bias
        Position bias (position,), 0 past its end.

    >>> ranking_exposure(np.array([[2, 0, 1]]), np.ones((1, 3), bool), np.array([1.0, 0.6, 0.5]))
    array([[0.6, 0.5, 1. ]])
    """
    rankings, mask, bias = alike(rankings, mask, bias)
    exposure = scatter(zeros((mask.shape[-1],), like=bias), rankings, resized(bias, rankings.shape[-1]))
    return masked_fill(exposure, ~mask, 0.0)


def _check(rankings: Array, weights: Array, mask: Array) -> None:
    if rankings.ndim != 3 or weights.shape != rankings.shape[:2] or mask.shape != rankings.shape[1:]:
        raise RankPolicyError(
            "rankings must be (ranking, query, position), weights (ranking, query) and mask (query, item) with as many "
            f"positions as items; got {tuple(rankings.shape)}, {tuple(weights.shape)} and {tuple(mask.shape)}. "
            "For one query add an axis: rankings[:, None], weights[:, None], mask[None]."
        )
    xp = namespace(rankings)
    if not is_floating(weights) or mask.dtype != xp.bool:
        raise RankPolicyError(f"weights must be floating point and mask bool; got {weights.dtype} and {mask.dtype}.")
    items = arange(rankings.shape[-1], like=rankings)
    if not (xp.sort(rankings, axis=-1) == items).all():
        raise RankPolicyError(
            f"every ranking must hold each of the {len(items)} item indices once, padded items last; got one that does not."
        )
    in_front = items < mask.sum(-1, keepdims=True)
    if not (gather(mask, rankings) == in_front).all():
        raise RankPolicyError(
            "padded items must come last in every ranking; got one with a padded item before a real one."
        )
    total = weights.sum(0)
    if not (weights >= 0).all() or not (abs(total - 1) <= TOLERANCE).all():
        raise RankPolicyError(
            "weights must be 0 or more and sum to 1 over the rankings of each query; "
            f"the lowest weight is {weights.min():g}, the sums run from {total.min():g} to {total.max():g}. "
            "Divide by the sums: weights / weights.sum(0)."
        )
