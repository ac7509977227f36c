"""Fair exposure by linear programming, one query at a time, on relevances that another method estimated.

    maximise  uᵀ P v - strength * D    over doubly stochastic P (item, position)

with u the relevances, v the position bias and D the group disparity of the exposure P v (Singh & Joachims 2018; 2019, appendix B.3). D
enters by one slack per pair of groups, ξ >= E_a / M_a - E_b / M_b for M_a >= M_b, ξ >= 0, and is their mean. Solved by HiGHS through scipy,
over the few rankings that an optimum mixes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.fairness.disparity import group_disparity
from rankpolicy.fairness.exposure import position_bias
from rankpolicy.fairness.groups import encode_groups
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

Floats = NDArray[np.float64]
_GAP = 1e-9  # by which the optimum may be missed; HiGHS itself stops within 1e-7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FairRanking:
    """A distribution over the rankings of one query, as a matrix.

    Parameters
    ----------
    probabilities
        Probability of each item at each position (item, position), doubly stochastic.
    utility
        uᵀ P v, on the relevances it was computed from.
    disparity
        Group disparity on these relevances; NaN where a group is absent or has no merit, and items are sorted by relevance.
    """

    probabilities: Floats  # (item, position)
    utility: float
    disparity: float

    @property
    def is_constrained(self) -> bool:
        """Whether the disparity was taken into account."""
        return not math.isnan(self.disparity)


def penalized_ranking(
    relevances: ArrayLike,
    groups: ArrayLike,
    *,
    strength: float,
    bias: ArrayLike | None = None,
    merit: ArrayLike | None = None,
) -> FairRanking:
    """The P that maximises utility minus ``strength`` times group disparity.

    Parameters
    ----------
    relevances
        Estimated relevance of each item (item,).
    groups
        Group of each item (item,), as text or numbers.
    strength
        Weight of the disparity, 0 or more.
    bias
        Position bias (position,); by default 1 / log2(1 + j).
    merit
        Merit of each item (item,); by default its relevance.

    >>> fair = penalized_ranking([3.0, 2.0], ["a", "b"], strength=100.0, bias=[1.0, 0.5])
    >>> fair.probabilities.round(6).tolist(), round(fair.disparity, 9)  # exposures 0.9 and 0.6 are as 3 to 2
    ([[0.8, 0.2], [0.2, 0.8]], 0.0)
    """
    if not strength >= 0:
        raise RankPolicyError(f"strength must be 0 or more; got {strength}.")
    return _solve(relevances, groups, bias, merit, strength=strength, max_disparity=None)


def constrained_ranking(
    relevances: ArrayLike,
    groups: ArrayLike,
    *,
    max_disparity: float,
    bias: ArrayLike | None = None,
    merit: ArrayLike | None = None,
) -> FairRanking:
    """The P of highest utility with a group disparity of at most ``max_disparity``.

    Parameters
    ----------
    relevances
        Estimated relevance of each item (item,).
    groups
        Group of each item (item,), as text or numbers.
    max_disparity
        The limit, 0 or more; every limit can be met.
    bias
        Position bias (position,); by default 1 / log2(1 + j).
    merit
        Merit of each item (item,); by default its relevance.

    >>> fair = constrained_ranking([3.0, 2.0], ["a", "b"], max_disparity=0.0, bias=[1.0, 0.5])
    >>> round(fair.utility, 6)  # 3 * 0.9 + 2 * 0.6; sorted by relevance it would be 4
    3.9
    """
    if not max_disparity >= 0:
        raise RankPolicyError(f"max_disparity must be 0 or more; got {max_disparity}.")
    return _solve(relevances, groups, bias, merit, strength=0.0, max_disparity=max_disparity)


def _solve(
    relevances: ArrayLike,
    groups: ArrayLike,
    bias: ArrayLike | None,
    merit: ArrayLike | None,
    *,
    strength: float,
    max_disparity: float | None,
) -> FairRanking:
    u, codes = np.asarray(relevances, dtype=np.float64), encode_groups(groups).codes
    deserved = u if merit is None else np.asarray(merit, dtype=np.float64)
    _check(u, codes, deserved)
    n, num_groups = len(u), codes.max() + 1
    v = position_bias(n, kind="log2" if bias is None else np.asarray(bias))
    M = np.bincount(codes, deserved) / np.bincount(codes)
    if num_groups < 2 or M.min() <= 0:
        sorted_by_relevance = np.zeros((n, n))
        sorted_by_relevance[np.argsort(-u, kind="stable"), np.arange(n)] = 1
        return FairRanking(
            probabilities=sorted_by_relevance, utility=float(u @ sorted_by_relevance @ v), disparity=math.nan
        )
    P = best_probabilities(u, v, _slacks(codes, M), strength=strength, max_disparity=max_disparity)
    # The group's merit for each member: estimated relevances of single items may be negative, where their mean is not.
    reached = group_disparity(*(array[None] for array in (P @ v, M[codes], codes, np.ones(n, bool))))
    return FairRanking(probabilities=P, utility=float(u @ P @ v), disparity=reached.mean)


class Slacks(NamedTuple):
    """A disparity that is convex in exposure e, for a linear program: D = sum of costs * ξ, ξ >= 0, ξ[slack_of] >= differences @ e."""

    differences: Floats  # (difference, item)
    slack_of: NDArray[np.int64]  # the slack that a difference limits from below (difference,)
    costs: Floats  # (slack,), 0 or more


def _slacks(codes: NDArray[np.int64], M: Floats) -> Slacks:
    """The group disparity. Differences times exposure give E_a / M_a - E_b / M_b; pairs of equal merit share a slack for both orders."""
    pairs = [(a, b) for a, b in permutations(range(len(M)), 2) if M[a] >= M[b]]
    shares = (codes == np.arange(len(M))[:, None]) / (np.bincount(codes) * M)[:, None]
    unordered = sorted({tuple(sorted(pair)) for pair in pairs})
    return Slacks(
        differences=np.array([shares[a] - shares[b] for a, b in pairs]),
        slack_of=np.array([unordered.index(tuple(sorted(pair))) for pair in pairs]),
        costs=np.full(len(unordered), 1 / len(unordered)),
    )


def best_probabilities(
    u: Floats, v: Floats, slacks: Slacks, *, strength: float = 0.0, max_disparity: float | None = None
) -> Floats:
    """P (item, position) as a mixture of few matrices, found by column generation (Dantzig & Wolfe 1960).

    The program has one variable per matrix known so far, not one per cell. Its multipliers give a price per unit of each item's exposure;
    the ranking by price is added, until it is worth no more than those that are mixed already.
    """
    if max_disparity is None and len(slacks.costs) == 1:
        is_both_ways = len(slacks.differences) == 2
        return _best_for_one_difference(
            u, v, slacks.differences[0], price=strength * float(slacks.costs[0]), is_both_ways=is_both_ways
        )
    n = len(u)
    # Equal exposure for all has no group disparity, so every limit can be met with it.
    matrices, exposures = [np.full((n, n), 1 / n)], [np.full(n, v.mean())]
    mixed_rankings: set[tuple[int, ...]] = set()
    ranking = np.argsort(-u, kind="stable")
    # With equal prices a new ranking may be worth no more, yet seem so by rounding: rankings already known end the search.
    while tuple(ranking) not in mixed_rankings:
        mixed_rankings.add(tuple(ranking))
        matrices.append(_placed(ranking))
        exposures.append(matrices[-1] @ v)
        best = _best_mixture(np.array(exposures).T, u, slacks, strength, max_disparity)
        prices = u + best.multipliers @ slacks.differences
        ranking = np.argsort(-prices, kind="stable")
        worth = float(prices[ranking] @ v)
        if worth - best.worth <= _GAP * max(1.0, abs(worth)):
            break
    return np.tensordot(best.weights, np.array(matrices), 1)


class _Ranked(NamedTuple):
    """The ranking by the values u - μ * difference, and what it is worth."""

    ranking: NDArray[np.int64]
    utility: float
    difference: float


def _best_for_one_difference(u: Floats, v: Floats, difference: Floats, *, price: float, is_both_ways: bool) -> Floats:
    """The same for one slack, as two groups have, where the dual has a single multiplier μ between 0 (or -price) and the price:

        min over μ of max over rankings of (u - μ * difference) @ exposure.

    At the best μ two rankings are worth the same, one of them with a difference above 0: they are mixed such that it is 0. Both ends close
    in on it where the lines of their rankings cross.
    """

    def ranked(multiplier: float) -> _Ranked:
        ranking = np.argsort(-(u - multiplier * difference), kind="stable")
        return _Ranked(ranking, float(u[ranking] @ v), float(difference[ranking] @ v))

    low, high = ranked(-price if is_both_ways else 0.0), ranked(price)
    if low.difference <= 0:
        return _placed(low.ranking)
    if high.difference >= 0:
        return _placed(high.ranking)
    while True:
        multiplier = (low.utility - high.utility) / (low.difference - high.difference)
        worth = low.utility - multiplier * low.difference
        middle = ranked(multiplier)
        if middle.utility - multiplier * middle.difference - worth <= _GAP * max(1.0, abs(worth)):
            break
        if middle.difference > 0:
            low = middle
        else:
            high = middle
    share = -high.difference / (low.difference - high.difference)
    return share * _placed(low.ranking) + (1 - share) * _placed(high.ranking)


def _placed(ranking: NDArray[np.int64]) -> Floats:
    """P (item, position) of a single ranking."""
    return np.eye(len(ranking))[np.argsort(ranking)]


class _Mixture(NamedTuple):
    """The best mixture of some exposures, and the prices it implies for others."""

    weights: Floats  # (exposure,)
    multipliers: Floats  # (difference,) 0 or less
    worth: float  # of each exposure that is mixed, at the prices u + multipliers @ differences


def _best_mixture(
    exposures: Floats, u: Floats, slacks: Slacks, strength: float, max_disparity: float | None
) -> _Mixture:
    """Variables: one weight per exposure (item, exposure), then the slacks."""
    linprog = require("scipy.optimize", "Fair ranking by linear programming").linprog
    num_weights, num_slacks, num_differences = exposures.shape[1], len(slacks.costs), len(slacks.differences)
    upper = np.hstack([slacks.differences @ exposures, -np.eye(num_slacks)[slacks.slack_of]])
    limits = np.zeros(num_differences)
    if max_disparity is not None:
        upper = np.vstack([upper, np.concatenate([np.zeros(num_weights), num_slacks * slacks.costs])])
        limits = np.append(limits, max_disparity * num_slacks)
    optimum = linprog(
        np.concatenate([-u @ exposures, strength * slacks.costs]),
        A_ub=upper,
        b_ub=limits,
        A_eq=np.repeat([[1.0, 0.0]], [num_weights, num_slacks], axis=1),
        b_eq=[1.0],
        bounds=(0, None),
        method="highs-ds",
    )
    if optimum.status != 0:
        raise RankPolicyError(
            f"the linear program must have an optimum; HiGHS says: {optimum.message} Rescale relevances or bias."
        )
    return _Mixture(
        weights=np.clip(optimum.x[:num_weights], 0.0, 1.0),
        multipliers=optimum.ineqlin.marginals[:num_differences],
        worth=-float(optimum.eqlin.marginals[0]),
    )


def _check(u: Floats, codes: NDArray[np.int64], merit: Floats) -> None:
    if u.ndim != 1 or len(u) == 0 or codes.shape != u.shape or merit.shape != u.shape:
        raise RankPolicyError(
            "relevances, groups and merit must be vectors over the items of one query; "
            f"got shapes {u.shape}, {codes.shape} and {merit.shape}. Call it once per query."
        )
    if not np.isfinite(u).all() or not np.isfinite(merit).all():
        raise RankPolicyError(
            "relevances and merit must be finite; got NaN or infinity. Check the model they come from."
        )
