"""The affinity policy of BanditRank: place items one by one, by affinity among those left and sometimes by chance."""

from __future__ import annotations

import math

from rankpolicy.arrays import (
    Array,
    Generator,
    alike,
    arange,
    as_double,
    as_like,
    clip,
    detached,
    log_sigmoid,
    namespace,
    new_generator,
    put,
    scatter,
    uniform,
    zeros,
)
from rankpolicy.display import frozen_value
from rankpolicy.metrics.ranked import full_rank_weights, rank_by_score
from rankpolicy.policies.choices import add_gumbel_noise, log_remaining_weights, sequential_choices, summed_shares
from rankpolicy.policies.plackett_luce import PlackettLuce, set_scores
from rankpolicy.types import RankPolicyError

_CELLS_AT_ONCE = 1 << 22  # samples x queries x items that exposure holds in memory


@frozen_value()
class Affinity:
    """P(ranking) = prod_{p <= M} (ε / (n - p + 1) + (1 - ε) a_{r(p)} / sum of the a not placed before p) (Gampa & Fujita 2019, eq. 3).

    Affinities are a = sigmoid(score). A query of n items gets a list of M = min(n, ``max_positions``) of them. With ε = 0 this is
    Plackett-Luce with the weights a; whether a choice is by affinity or by chance is drawn anew at every position.

    Parameters
    ----------
    scores
        Floating-point scores (query, item), the logits of the affinities.
    mask
        True where ``scores`` holds a real item (query, item).
    epsilon
        Share of choices made by chance, 0 to 1, or one share per query (query,). 0.1 is usual in training.
    max_positions
        Length M of the lists; by default they hold all items.

    >>> import numpy as np
    >>> affinities = np.array([[0.6, 0.4, 0.2]])
    >>> policy = Affinity(np.log(affinities / (1 - affinities)), np.ones((1, 3), bool), epsilon=0.1)
    >>> np.exp(policy.log_prob(np.array([[0]]))).round(4)  # 0.1 / 3 + 0.9 * 0.6 / 1.2
    array([0.4833])
    >>> policy.mode()
    array([[0, 1, 2]])
    """

    scores: Array  # (query, item)
    mask: Array  # (query, item) bool
    epsilon: float | Array = 0.1
    max_positions: int | None = None

    def __post_init__(self) -> None:
        set_scores(self)
        check_exploration(self.epsilon, self.max_positions)

    def sample(self, num_samples: int, *, cutoff: int | None = None, generator: Generator | None = None) -> Array:
        """Lists (sample, query, position) of the first M items; padded items come last.

        Parameters
        ----------
        num_samples
            Lists per query.
        cutoff
            How many positions to return; by default, and at most, M.
        generator
            Source of randomness: a ``torch.Generator`` for tensors, a ``numpy.random.Generator`` for arrays; by default an unseeded one.
        """
        # One race and one shuffle serve all positions: what is left of either is independent of what was placed by the other.
        race = add_gumbel_noise(log_sigmoid(self.scores), num_samples=num_samples, generator=generator)
        shuffle = uniform(race.shape, like=race, generator=generator)
        xp, depth = namespace(race), self._depth(cutoff)
        explores = uniform((*race.shape[:2], depth), like=race, generator=generator)
        explores = explores < self._epsilon_of_query(race)
        # Padded items stay behind all others, placed items behind these.
        open_to_choice = zeros(race.shape, like=race) + self.mask
        placed = []
        for position in range(depth):
            keys = xp.where(explores[..., position, None], shuffle, race)
            best = xp.where(open_to_choice == xp.max(open_to_choice, axis=-1, keepdims=True), keys, -math.inf)
            placed.append(xp.argmax(best, axis=-1)[..., None])
            put(open_to_choice, placed[-1], -1.0)
        return xp.concat(placed, axis=-1)

    def log_prob(self, rankings: Array, *, cutoff: int | None = None) -> Array:
        """Log probability (..., query) of the first M positions of rankings; differentiable in the scores.

        Parameters
        ----------
        rankings
            Lists or their first positions (..., query, position).
        cutoff
            How many positions count; by default, and at most, M.
        """
        _, placed = alike(self.scores, rankings[..., : self._depth(cutoff)])
        choices = sequential_choices(log_sigmoid(self.scores), self.mask, placed, epsilon=self.epsilon)
        return namespace(placed).where(choices.is_item, choices.log_prob, 0.0).sum(-1)

    def mode(self) -> Array:
        """All items by descending affinity (query, position); its first M positions are the most probable list."""
        return rank_by_score(self.scores, self.mask)

    def exposure(
        self,
        rank_weights: Array | None = None,
        *,
        cutoff: int | None = None,
        num_samples: int = 2000,
        generator: Generator | None = None,
    ) -> Array:
        """Expected weight of each item's rank (query, item); ranks past M weigh 0.

        Exact where ε is 0 (Plackett-Luce with log weights log a) or 1 (all ranks equally likely). In between, the probability of a rank
        depends on the whole set of items placed before, so it is estimated: the mean over sampled lists of the probability that
        the item is chosen at each position, given the positions before. That is unbiased, and its sum over items is exact; at 2000 lists
        the standard error was at most 0.009 for 10 to 100 items with the default weights.

        Parameters
        ----------
        rank_weights
            Weight of each rank (position,), 0 past its end; by default 1 / log2(1 + rank), the position bias of DCG.
        cutoff
            Ranks past this weigh 0; by default those past M do.
        num_samples
            Lists per query, for 0 < ε < 1. The standard error falls with its square root.
        generator
            Source of randomness, for 0 < ε < 1; by default one with seed 0, so that equal policies have equal exposures.

        >>> import numpy as np
        >>> policy = Affinity(np.zeros((1, 2)), np.ones((1, 2), bool), epsilon=0.0)
        >>> policy.exposure().round(4)  # (1 + 0.6309) / 2 each
        array([[0.8155, 0.8155]])
        """
        depth = self._depth(cutoff)
        weights = full_rank_weights(rank_weights, like=self.scores, cutoff=depth)
        scores, xp = detached(self.scores), namespace(self.scores)
        in_double = as_double(scores)
        epsilon = xp.broadcast_to(self._epsilon_of_query(in_double), (len(scores), 1))
        if (epsilon == 0).all():
            return as_like(PlackettLuce(log_sigmoid(in_double), self.mask).exposure(weights), scores)
        if (epsilon == 1).all():
            sizes = self.mask.sum(-1, keepdims=True)
            summed = xp.cumulative_sum(weights, include_initial=True)[sizes]
            return as_like(xp.where(self.mask, summed / clip(sizes, 1), 0.0), scores)
        if generator is None:
            generator = new_generator(0, like=scores)
        total = xp.zeros_like(in_double)
        lists_at_once = max(1, _CELLS_AT_ONCE // math.prod(scores.shape))
        for first in range(0, num_samples, lists_at_once):
            count = min(lists_at_once, num_samples - first)
            rankings = self.sample(count, cutoff=depth, generator=generator)
            total += self._conditional_exposure(rankings, weights[:depth], epsilon).sum(0)
        return as_like(total / num_samples, scores)

    def _conditional_exposure(self, rankings: Array, weights: Array, epsilon: Array) -> Array:
        """Σ_p weight_p P(item is chosen at p | positions before p) (sample, query, item)."""
        xp, mask = namespace(rankings), self.mask
        log_affinities = log_sigmoid(as_double(detached(self.scores)))
        log_remaining = log_remaining_weights(log_affinities, mask, rankings)
        num_left = mask.sum(-1, keepdims=True) - arange(rankings.shape[-1], like=rankings)
        amounts = xp.where(num_left > 0, weights, 0.0)  # (query, position); nothing is chosen past the last item
        of_rankings = xp.broadcast_to(amounts, rankings.shape)
        by_affinity = summed_shares(log_affinities, rankings, log_remaining, of_rankings)
        shares = (amounts / clip(num_left, 1)).cumsum(-1)
        by_chance = scatter(xp.broadcast_to(shares[..., -1:], by_affinity.shape), rankings, shares)
        return xp.where(mask, (1 - epsilon) * by_affinity + epsilon * by_chance, 0.0)

    def _epsilon_of_query(self, like: Array) -> Array:
        """(query, 1) or (1, 1)"""
        return as_like(self.epsilon, like).reshape(-1, 1)

    def _depth(self, cutoff: int | None) -> int:
        return min(limit for limit in (self.scores.shape[-1], self.max_positions, cutoff) if limit is not None)


def check_exploration(epsilon: float | Array, max_positions: int | None) -> None:
    """Check the ranges of the share of chance and of the length of lists."""
    if not (0 <= epsilon <= 1 if isinstance(epsilon, int | float) else ((epsilon >= 0) & (epsilon <= 1)).all()):
        raise RankPolicyError(f"epsilon is a share of choices, from 0 to 1; got {epsilon}.")
    if max_positions is not None and max_positions < 1:
        raise RankPolicyError(f"max_positions must be at least 1, or None for whole lists; got {max_positions}.")
