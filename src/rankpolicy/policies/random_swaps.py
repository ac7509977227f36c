"""Two positions of a ranking swapped with probability 1/2 (Joachims, Swaminathan & Schnabel 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankpolicy.arrays import (
    Array,
    Generator,
    alike,
    arange,
    as_double,
    as_like,
    choices,
    clip,
    namespace,
    pair_indices,
    scatter,
    uniform,
    zeros,
)
from rankpolicy.policies.reordering import Reordering
from rankpolicy.types import RankPolicyError, unknown_name

SWAPPED = ("any", "first", "adjacent")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RandomSwaps(Reordering):
    """The base ranking with two of its first ``depth`` positions, drawn at random for each list, swapped with probability 1/2.

    Both positions show the same items equally often, so clicks on them give the position bias by the method "swaps" of
    ``rp.estimate_position_bias``, which needs the positions drawn: ``show()`` draws a list and what a log has to keep. Lists change less
    than with TopShuffle.

    Parameters
    ----------
    scores
        Floating-point scores (query, item); the base ranking is by descending score. For a given order use minus the position.
    mask
        True where ``scores`` holds a real item (query, item).
    depth
        Positions that may be swapped, at least 2.
    pairs
        Which pairs of positions are drawn from, all equally likely: "any" two, the "first" and another one (Joachims et al. 2017), or
        "adjacent" ones (Wang et al. 2018), which change lists least.

    >>> policy = RandomSwaps(np.array([[3.0, 2.0, 1.0]]), np.ones((1, 3), bool), pairs="first")
    >>> np.exp(policy.log_prob(np.array([[[0, 1, 2]], [[1, 0, 2]], [[2, 1, 0]], [[0, 2, 1]]])))[:, 0]
    array([0.5 , 0.25, 0.25, 0.  ])
    >>> policy.propensities(np.array([[1, 0, 2]]))  # item 2 stays in three of four lists
    array([[0.25, 0.25, 0.75]])
    """

    pairs: str = "any"

    def __post_init__(self) -> None:
        super(RandomSwaps, self).__post_init__()
        if self.depth < 2:
            raise RankPolicyError(f"depth must be at least 2 to swap positions; got {self.depth}.")
        if self.pairs not in SWAPPED:
            raise RankPolicyError(unknown_name("pairs", self.pairs, SWAPPED))

    def log_prob(self, rankings: Array, *, cutoff: int | None = None) -> Array:
        """Log probability (..., query) of rankings; -inf for those that the policy never shows.

        Parameters
        ----------
        rankings
            Whole rankings or their first positions (..., query, position).
        cutoff
            How many positions count; by default all that ``rankings`` holds.
        """
        _, placed = alike(self.scores, rankings[..., :cutoff])
        base, ignored = self._base_positions(placed), ~self._is_item(placed)
        chances = self._chances()
        positions = arange(placed.shape[-1], like=placed)
        total = ((base == positions) | ignored).all(-1) * (1 - chances.sum(-1) / 2)
        for (first, second), chance in zip(self._pairs().tolist(), chances.T, strict=True):
            swapped = positions + 0
            swapped[positions == first], swapped[positions == second] = second, first
            total = total + ((base == swapped) | ignored).all(-1) * chance / 2
        with np.errstate(divide="ignore"):  # of lists that are never shown
            return as_like(namespace(total).log(total), self.scores)

    def _drawn(self, num_samples: int, generator: Generator | None) -> tuple[Array, Array]:
        xp, (num_queries, num_items) = namespace(self.scores), self.scores.shape
        order = xp.tile(arange(num_items, like=self.scores), (num_samples, num_queries, 1))
        swaps = xp.full((num_samples, num_queries, 2), -1, device=order.device)
        chances = self._chances()
        has_pairs = chances.sum(-1) > 0
        if not has_pairs.any():
            return order, swaps
        drawn = choices(chances[has_pairs], num_samples, generator=generator)
        chosen = self._pairs()[drawn]  # (sample, query, 2)
        coin = uniform(drawn.shape, like=chances, generator=generator) < 0.5
        swaps[:, has_pairs] = chosen
        shown_at = xp.where(coin[..., None], xp.flip(chosen, axis=-1), chosen)
        order[:, has_pairs] = scatter(order[:, has_pairs], chosen, shown_at)
        return order, swaps

    def _placement(self) -> Array:
        chances, width = self._chances() / 2, min(self.depth, self.scores.shape[-1])
        first, second = self._pairs().T
        placement = zeros((len(chances), width, width), like=chances)
        placement[:, first, second] = placement[:, second, first] = chances
        at_rest = 1 - placement.sum(-1)
        positions = arange(width, like=first)
        placement[:, positions, positions] = at_rest
        return placement

    def _pairs(self) -> Array:
        """The pairs of positions (pair, 2) that lists of ``depth`` items are drawn from."""
        width = min(self.depth, self.scores.shape[-1])
        first, second = pair_indices(width, like=self.scores)
        is_drawn = {"any": first >= 0, "first": first == 0, "adjacent": second == first + 1}[self.pairs]
        return namespace(first).stack([first[is_drawn], second[is_drawn]], axis=-1)

    def _chances(self) -> Array:
        """P(pair) of each query (query, pair): equal for pairs within its list, all 0 where it has fewer than two items."""
        is_inside = as_double(self._pairs()[:, 1] < self._tops()[:, None])
        return is_inside / clip(is_inside.sum(-1, keepdims=True), 1)
