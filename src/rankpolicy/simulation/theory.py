"""Bounds on dcmKL-UCB's regret after n steps (Katariya et al. 2016).

There are L items sorted by attraction w and K positions; alpha = (1 - w_1)^{K - 1}, gaps d_{e,i} = w_i - w_e. The upper bounds are taken at
epsilon = 0 and without their term in n^{-beta}, which vanishes and whose constants are not known: they describe how regret grows, and
early regret may exceed them.

For UBM and CCM users we know of no published bound in terms of gaps, so none is given.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.declarations.arguments import as_float64, checked_kinds, whole_number
from rankpolicy.simulation.problems import Problem
from rankpolicy.types import RankPolicyError


@checked_kinds
def upper_bound(problem: Problem, steps: ArrayLike) -> NDArray[np.float64] | None:
    """Upper bound on the regret of dcmKL-UCB, for DCM users with v_1 >= ... >= v_K and for cascade users. None where none holds.

    Theorem 2: sum_i (v_i - v_{i+1}) / alpha x B_i, v_{K+1} = 0, B_i from ``cascade_bound``; with v_1 = ... = v_K it is Theorem 1. For users
    who stop at the first click (cascade, or v = 1) regret is at most B_K, without the factor 1 / alpha (Proposition 1). That is the bound
    of CascadeKL-UCB too (Kveton et al. 2015, Theorem 3).

    Parameters
    ----------
    problem
        The problem; bounds exist for DCM and cascade users who do not change.
    steps
        Numbers of steps n at which the bound is computed (step,).
    """
    constants = _dcm_constants(problem)
    if constants is None:
        return None
    attraction, termination, cutoff, alpha = constants
    if (termination == 1).all():
        return cascade_bound(attraction, steps, num_shown=cutoff)
    if alpha == 0 or (np.diff(termination) > 0).any():
        return None
    drops = termination - np.append(termination[1:], 0.0)
    bounds = [cascade_bound(attraction, steps, num_shown=i) for i in range(1, cutoff + 1)]
    total: NDArray[np.float64] = drops @ np.array(bounds) / alpha
    return total


@checked_kinds
def cascade_bound(attraction: ArrayLike, steps: ArrayLike, *, num_shown: int) -> NDArray[np.float64]:
    """Proposition 1 of Katariya et al. (2016): the bound B_i on the cascade regret of the first i positions.

    B_i = sum_{e > i} d_{e,i} (1 + log(1 / d_{e,i})) / kl(w_e, w_i) x (log n + 3 log log n) + 7 i log log n. Items as attractive as the i-th
    cost nothing and are left out. The cascade regret of i positions counts lists by 1 - prod_{k <= i} (1 - w_k).

    Parameters
    ----------
    attraction
        P(click | examined) of every item (item,), in any order.
    steps
        Numbers of steps n at which the bound is computed (step,).
    num_shown
        i, the number of positions.
    """
    probabilities = as_float64("attraction", attraction)
    if probabilities.ndim != 1 or len(probabilities) == 0 or not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise RankPolicyError(f"attraction must be probabilities (item,); got {attraction!r:.80}.")
    num_shown = whole_number("num_shown", num_shown, at_least=1, at_most=max(1, len(probabilities)))
    descending = np.sort(probabilities)[::-1]
    n = np.maximum(_checked_steps(steps), math.e)  # log log n starts at 0
    log_log = np.log(np.log(n))
    best = float(descending[num_shown - 1])
    costs = [
        (best - w) * (1 + math.log(1 / (best - w))) / bernoulli_kl(w, best)
        for w in map(float, descending[num_shown:])
        if w < best
    ]
    bound: NDArray[np.float64] = sum(costs) * (np.log(n) + 3 * log_log) + 7 * num_shown * log_log
    return bound


@checked_kinds
def lower_bound(problem: Problem, steps: ArrayLike) -> NDArray[np.float64] | None:
    """Theorem 3: gamma alpha (L - K) Delta / kl(p - Delta, p) x log n for B_LB(L, A*, p, Delta, gamma). None for other problems.

    From E[T_n] / log n >= 1 / kl(p - Delta, p) for each of the L - K items (Lai & Robbins 1985); showing one of them costs Delta.
    The paper writes Delta / kl there, which would be one Delta too many; its result is that of 1 / kl.

    Parameters
    ----------
    problem
        The problem; the bound exists for problems of ``dcm_lower_bound_problem`` and ``cascade_lower_bound_problem``.
    steps
        Numbers of steps n at which the bound is computed (step,).
    """
    constants = _dcm_constants(problem)
    if constants is None:
        return None
    attraction, termination, cutoff, alpha = constants
    best, worse = attraction[:cutoff], attraction[cutoff:]
    if len(worse) == 0 or np.ptp(best) > 0 or np.ptp(worse) > 0 or np.ptp(termination) > 0 or worse[0] >= best[0]:
        return None
    slope = termination[0] * alpha * len(worse) * (best[0] - worse[0]) / bernoulli_kl(worse[0], best[0])
    bound: NDArray[np.float64] = slope * np.log(_checked_steps(steps))
    return bound


def _checked_steps(steps: ArrayLike) -> NDArray[np.float64]:
    numbers = as_float64("steps", steps)
    if numbers.ndim != 1 or not (numbers >= 1).all():
        raise RankPolicyError(f"steps must be a list of numbers, 1 or more; got {steps!r:.80}.")
    return numbers


def bernoulli_kl(p: float, q: float) -> float:
    """kl(p, q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q)), 0 log 0 = 0.

    >>> round(bernoulli_kl(0.05, 0.2), 6)  # 0.05 log 0.25 + 0.95 log(0.95 / 0.8)
    0.093943
    """
    total = 0.0
    for x, y in ((p, q), (1 - p, 1 - q)):
        if x > 0:
            total += math.inf if y <= 0 else x * math.log(x / y)
    return total


def _dcm_constants(problem: Problem) -> tuple[NDArray[np.float64], NDArray[np.float64], int, float] | None:
    """Sorted attraction, termination, cutoff and alpha of a DCM or cascade (v = 1) user who does not change."""
    user, cutoff = problem.phases[0].user, min(problem.cutoff, problem.num_items)
    if len(problem.phases) > 1 or user.kind not in ("dcm", "cm"):
        return None
    attraction = np.sort(user.attraction)[::-1]
    termination = user.parameters["stop"][:cutoff] if user.kind == "dcm" else np.ones(cutoff)
    return attraction, termination, cutoff, float((1 - attraction[0]) ** (cutoff - 1))
