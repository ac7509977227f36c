"""The top of a ranking in random order (RandTopN of Wang, Bendersky, Metzler & Najork 2016)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rankpolicy.arrays import (
    Array,
    Generator,
    alike,
    arange,
    as_double,
    as_like,
    clip,
    log_factorial,
    namespace,
    uniform,
)
from rankpolicy.policies.reordering import Reordering


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TopShuffle(Reordering):
    """The first ``depth`` items of the base ranking in random order, every order equally likely; the others stay where they are.

    Items are equally relevant at all of these positions on average, so clicks on them give the position bias by the method "randomised" of
    ``rp.estimate_position_bias``. ``show()`` draws a list and what a log has to keep.

    Parameters
    ----------
    scores
        Floating-point scores (query, item); the base ranking is by descending score. For a given order use minus the position.
    mask
        True where ``scores`` holds a real item (query, item).
    depth
        How many items change places. More positions are measured with a larger depth, and users see worse lists.

    >>> import numpy as np
    >>> policy = TopShuffle(np.array([[3.0, 2.0, 1.0]]), np.ones((1, 3), bool), depth=2)
    >>> np.exp(policy.log_prob(np.array([[[1, 0, 2]], [[2, 1, 0]]])))  # 1 / 2!; item 2 never comes first
    array([[0.5],
           [0. ]])
    >>> policy.propensities(np.array([[1, 0, 2]]))
    array([[0.5, 0.5, 1. ]])
    """

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
        base, tops, xp = self._base_positions(placed), self._tops(), namespace(placed)
        positions = arange(placed.shape[-1], like=placed)
        stays = xp.where(positions < tops[:, None], base < tops[:, None], base == positions)
        is_possible = (stays | ~self._is_item(placed)).all(-1)
        num_left = clip(tops - placed.shape[-1], 0)
        log_share = log_factorial(as_like(num_left, self.scores)) - log_factorial(as_like(tops, self.scores))
        return xp.where(is_possible, log_share, -math.inf)

    def _drawn(self, num_samples: int, generator: Generator | None) -> tuple[Array, Array]:
        shape, xp = (num_samples, *self.scores.shape), namespace(self.scores)
        positions = as_double(arange(shape[-1], like=self.scores))
        keys = uniform(shape, like=positions, generator=generator)
        order = xp.argsort(xp.where(positions < self._tops()[:, None], keys, 1 + positions), axis=-1)
        return order, xp.full((*shape[:2], 2), -1, device=order.device)

    def _placement(self) -> Array:
        width, xp = min(self.depth, self.scores.shape[-1]), namespace(self.scores)
        is_top = arange(width, like=self.scores) < self._tops()[:, None]
        # In float64 before the division: the quotient of integer tensors is float32.
        shuffled = as_double(is_top[:, :, None] & is_top[:, None, :]) / clip(self._tops(), 1)[:, None, None]
        still = xp.eye(width, dtype=xp.float64, device=self.scores.device)
        return xp.where(is_top[:, :, None], shuffled, still)
