"""The Plackett-Luce policy: place items one by one, each with probability proportional to exp(score) among those left."""

from __future__ import annotations

from typing import Any

from rankpolicy.arrays import Array, Generator, alike, is_floating, namespace
from rankpolicy.display import frozen_value
from rankpolicy.metrics.ranked import full_rank_weights, rank_by_score
from rankpolicy.policies.choices import add_gumbel_noise, log_remaining_weights, ranked_log_weights
from rankpolicy.policies.race import exact_exposure
from rankpolicy.types import RankPolicyError


@frozen_value()
class PlackettLuce:
    """P(ranking) = prod_p exp(s_{r(p)}) / sum_{j >= p} exp(s_{r(j)}) (Plackett 1975; Luce 1959).

    Scores are log weights: weights 3, 2, 1 rank the items 0, 1, 2 with probability 3/6 * 2/3 = 1/3.

    Parameters
    ----------
    scores
        Floating-point scores (query, item); higher is better. Any finite value is safe, 1e4 too.
    mask
        True where ``scores`` holds a real item (query, item).

    >>> import numpy as np
    >>> policy = PlackettLuce(np.log([[3.0, 2.0, 1.0]]), np.ones((1, 3), bool))
    >>> np.exp(policy.log_prob(np.array([[0, 1, 2]]))).round(4)
    array([0.3333])
    >>> policy.mode()
    array([[0, 1, 2]])
    """

    scores: Array  # (query, item)
    mask: Array  # (query, item) bool

    def __post_init__(self) -> None:
        set_scores(self)

    def sample(self, num_samples: int, *, cutoff: int | None = None, generator: Generator | None = None) -> Array:
        """Rankings (sample, query, position), drawn by sorting scores with Gumbel noise.

        Parameters
        ----------
        num_samples
            Rankings per query.
        cutoff
            How many positions to return; by default all.
        generator
            Source of randomness: a ``torch.Generator`` for tensors, a ``numpy.random.Generator`` for arrays; by default an unseeded one.
        """
        noisy_scores = add_gumbel_noise(self.scores, num_samples=num_samples, generator=generator)
        return rank_by_score(noisy_scores, self.mask)[..., :cutoff]

    def log_prob(self, rankings: Array, *, cutoff: int | None = None) -> Array:
        """Log probability (..., query) of rankings; differentiable in the scores.

        Parameters
        ----------
        rankings
            Whole rankings or their first positions (..., query, position).
        cutoff
            How many positions count; by default all that ``rankings`` holds.
        """
        scores, mask, placed = alike(self.scores, self.mask, rankings[..., :cutoff])
        log_weights, is_item = ranked_log_weights(scores, mask, placed)
        steps = log_weights - log_remaining_weights(scores, mask, placed)
        return namespace(steps).where(is_item, steps, 0.0).sum(-1)

    def mode(self) -> Array:
        """The most probable ranking (query, position): items by descending score."""
        return rank_by_score(self.scores, self.mask)

    def exposure(self, rank_weights: Array | None = None, *, cutoff: int | None = None) -> Array:
        """Expected weight of each item's rank (query, item), exact (policies/race.py).

        Parameters
        ----------
        rank_weights
            Weight of each rank (position,), 0 past its end; by default 1 / log2(1 + rank), the position bias of DCG.
        cutoff
            Ranks past this weigh 0; by default none do.

        >>> import numpy as np
        >>> PlackettLuce(np.zeros((1, 2)), np.ones((1, 2), bool)).exposure().round(4)  # (1 + 0.6309) / 2 each
        array([[0.8155, 0.8155]])
        """
        weights = full_rank_weights(rank_weights, like=self.scores, cutoff=cutoff)
        return exact_exposure(self.scores, self.mask, weights[:cutoff])


def set_scores(policy: Any) -> None:
    """Store the scores and the mask of a policy as arrays of one kind, checked."""
    scores, mask = checked_scores(policy.scores, policy.mask)
    object.__setattr__(policy, "scores", scores)
    object.__setattr__(policy, "mask", mask)


def checked_scores(scores: Array, mask: Array) -> tuple[Array, Array]:
    """Scores and mask as arrays of one kind, with the right shapes and dtypes."""
    scores, mask = alike(scores, mask)
    if scores.ndim != 2 or mask.shape != scores.shape:
        raise RankPolicyError(
            f"scores and mask must both be (query, item); got {tuple(scores.shape)} and {tuple(mask.shape)}. "
            "For one query add an axis: scores[None]."
        )
    if not is_floating(scores) or mask.dtype != namespace(mask).bool:
        raise RankPolicyError(f"scores must be floating point and mask bool; got {scores.dtype} and {mask.dtype}.")
    return scores, mask
