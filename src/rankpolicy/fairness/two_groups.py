"""Two groups whose labels are uncertain: the best utility and the expected disparity as functions of the exposure of one group, exactly.

A policy over rankings with item values w has the utility sum of w_i e_i, e the exposures. Among all policies that give group 1 the total
exposure t, the best utility U*(t) is concave and piecewise linear: its vertices are the rankings sorted by w + μ [group 1], from μ = -∞
(group 0 first) to ∞ (group 1 first). Within a group the order never changes, so item a of group 0 and item b of group 1 (both counted from
0, best first) change places once, at μ = w_a - w_b, when they stand at positions a + b and a + b + 1 (from 0):

    dt = v[a + b] - v[a + b + 1],    dU = -(w_a - w_b) dt

Sorting the n0 n1 exchanges by μ and adding up gives all vertices in O(n0 n1 log n).

The expected disparity is over scenarios s of labels with probabilities p_s, in each of which group g has the mean merit M_g^s. Its
disparity D^s is that of ``group_disparity``; a scenario in which a group has no merit has none and adds 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankpolicy.fairness.birkhoff import Decomposition
from rankpolicy.fairness.label_scenarios import MeritScenarios

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExposureFrontier:
    """The function U*(t) of one query, and the policies that reach it."""

    exposures: Floats  # (vertex,)
    utilities: Floats  # (vertex,)
    orders: tuple[NDArray[np.int64], NDArray[np.int64]]  # items of group 0 and of group 1, each best first
    exchanges: NDArray[np.int64]  # (vertex - 1, 2)

    def utility(self, exposure: Floats) -> Floats:
        """U*(t) at any total exposures of group 1."""
        return np.interp(exposure, self.exposures, self.utilities)

    def ranking(self, vertex: int) -> NDArray[np.int64]:
        """The ranking (position,) at a vertex."""
        first, second = self.orders
        done = self.exchanges[:vertex]
        # An item of group 0 falls by one position in each of its exchanges, an item of group 1 rises.
        positions = np.concatenate(
            [
                np.arange(len(first)) + np.bincount(done[:, 0], minlength=len(first)),
                np.arange(len(second)) + len(first) - np.bincount(done[:, 1], minlength=len(second)),
            ]
        )
        ranking = np.empty(len(positions), np.int64)
        ranking[positions] = np.concatenate([first, second])
        return ranking

    def policy(self, exposure: float) -> Decomposition:
        """The policy with utility U*(t): a ranking, or a mixture of two."""
        above = int(np.clip(np.searchsorted(self.exposures, exposure), 1, max(1, len(self.exposures) - 1)))
        low, high = above - 1, min(above, len(self.exposures) - 1)
        gap = self.exposures[high] - self.exposures[low]
        share = float(np.clip((exposure - self.exposures[low]) / gap, 0.0, 1.0)) if gap > 0 else 0.0
        mixed = [(weight, vertex) for weight, vertex in ((share, high), (1 - share, low)) if weight > 0]
        mixed.sort(reverse=True)
        rankings = np.stack([self.ranking(vertex) for _, vertex in mixed])
        return Decomposition(rankings, np.array([weight for weight, _ in mixed]))


def exposure_frontier(values: Floats, is_group_1: NDArray[np.bool_], bias: Floats) -> ExposureFrontier:
    """All vertices of U*(t) for one query.

    >>> frontier = exposure_frontier(np.array([3.0, 2.0]), np.array([False, True]), np.array([1.0, 0.5]))
    >>> frontier.exposures.tolist(), frontier.utilities.tolist()  # item 0 first; item 1 first
    ([0.5, 1.0], [4.0, 3.5])
    >>> frontier.policy(0.75).weights.tolist()
    [0.5, 0.5]
    """
    first, second = (_best_first(values, np.flatnonzero(is_group_1 == group)) for group in (False, True))
    a, b = (index.ravel() for index in np.indices((len(first), len(second))))
    price = values[first][a] - values[second][b]
    # At equal prices the lowest item of group 0 is passed first, by the best item of group 1: both stand side by side then.
    order = np.lexsort((b, -a, price))
    a, b, price = a[order], b[order], price[order]
    step = bias[a + b] - bias[a + b + 1]
    lowest = float(bias[len(first) :].sum())
    at_lowest = float(values[first] @ bias[: len(first)] + values[second] @ bias[len(first) :])
    return ExposureFrontier(
        exposures=lowest + np.concatenate([[0.0], np.cumsum(step)]),
        utilities=at_lowest - np.concatenate([[0.0], np.cumsum(price * step)]),
        orders=(first, second),
        exchanges=np.stack([a, b], axis=1),
    )


def _best_first(values: Floats, items: NDArray[np.int64]) -> NDArray[np.int64]:
    return items[np.argsort(-values[items], kind="stable")]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedDisparity:
    """E[D] as a function of t, the total exposure of group 1 of two groups: convex and piecewise linear.

    Each scenario contributes slope * max(0, t - kink) where group 1 has at least the merit of group 0, and slope * max(0, kink - t) where
    it has at most that. With n_g members per group and T the total exposure of the query,

        kink = T n1 M1 / (n1 M1 + n0 M0),    slope = p (1 / (n1 M1) + 1 / (n0 M0))
    """

    kinks: Floats  # (scenario,)
    slopes_above: Floats  # slope to the right of the kink (scenario,); 0 where more exposure of group 1 is never unfair
    slopes_below: Floats  # slope to the left, as a positive number (scenario,)

    def __call__(self, exposure: Floats) -> Floats:
        """E[D] at total exposures t of group 1."""
        order = np.argsort(self.kinks)
        kinks, above, below = self.kinks[order], self.slopes_above[order], self.slopes_below[order]
        passed = np.searchsorted(kinks, exposure)
        sums = [_before(above), _before(above * kinks), _before(below), _before(below * kinks)]
        above_sum, above_kinks, below_sum, below_kinks = (total[passed] for total in sums)
        above_part = above_sum * exposure - above_kinks
        below_part = (sums[3][-1] - below_kinks) - (sums[2][-1] - below_sum) * exposure
        return np.asarray(np.maximum(above_part, 0.0) + np.maximum(below_part, 0.0))


def expected_disparity(
    scenarios: MeritScenarios, sizes: NDArray[np.int64], total: float, *, two_sided: bool = False
) -> ExpectedDisparity:
    """E[D] of two groups as a function of the exposure of group 1.

    >>> half = MeritScenarios(merits=np.array([[1.0, 3.0]]), probabilities=np.array([1.0]))
    >>> disparity = expected_disparity(half, np.array([1, 1]), 2.0)
    >>> disparity.kinks.tolist(), disparity(np.array([1.5, 1.8])).round(6).tolist()  # 1.8 / 3 - 0.2 / 1
    ([1.5], [0.0, 0.4])
    """
    counted = scenarios.with_disparity()
    merit_0, merit_1 = (counted.merits * sizes).T
    slopes = counted.probabilities * (1 / merit_1 + 1 / merit_0)
    lower, higher = counted.merits[:, 0] <= counted.merits[:, 1], counted.merits[:, 0] >= counted.merits[:, 1]
    return ExpectedDisparity(
        kinks=total * merit_1 / (merit_1 + merit_0),
        slopes_above=np.where(lower | two_sided, slopes, 0.0),
        slopes_below=np.where(higher | two_sided, slopes, 0.0),
    )


def _before(values: Floats) -> Floats:
    """Sums of all values before each place (values + 1,)."""
    return np.concatenate([[0.0], np.cumsum(values)])
