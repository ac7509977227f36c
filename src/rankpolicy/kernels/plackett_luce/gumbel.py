"""Gradients and exposures that integrate each item's own noise (gradients/gumbel.py), threads over queries.

With T_k = e^{-w_k}, the time at which the k-th of the others arrives in the race of draws.py, and λ_i = e^{s_i},

    g(w_k - s_i) = λ_i T_k e^{-λ_i T_k}

so a swap costs one exponential. Given the order, the times between arrivals are independent exponentials with the rate of all that are
still to come: the order is drawn first, at the cost of a few items, and only the times at its top follow.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.plackett_luce.draws import draw_ranking, fill_remaining, gather, new_draws
from rankpolicy.kernels.plackett_luce.random_stream import exponential, stream

_LARGEST_LOG = 30.0  # exp(-e^30) is 0

Floats = NDArray[np.float64]


class Cascade(NamedTuple):
    """The arrays of gradients/gumbel.py that rewards are computed from."""

    rank_weights: Floats  # (term, position) θ
    item_values: Floats  # (term, query, item) ρ; (item, term) inside a query
    keep: Floats  # κ, likewise
    add: Floats  # α, likewise


class KeptDraws(NamedTuple):
    """The draws behind an estimate (sample, query, position), for tests: one position more than there are swaps; empty unless asked for."""

    rankings: NDArray[np.int64]  # -1 past the end of a short query
    noisy_scores: Floats  # -inf past the end


class GumbelResult(NamedTuple):
    """Float64 arrays of a batch."""

    gradient: Floats  # (query, item)
    utility: Floats  # (query,) mean reward
    kept: KeptDraws


def gumbel_queries(
    scores: NDArray[Any],
    mask: NDArray[np.bool_],
    cascade: Cascade,
    *,
    num_swaps: int,
    num_samples: int,
    seed: int,
    keep_draws: bool = False,
) -> GumbelResult:
    """Estimate for scores (query, item); ``num_swaps`` is the last rank at which rank weights change."""
    result = GumbelResult(
        np.zeros(scores.shape), np.zeros(len(scores)), _room(scores.shape, num_swaps, num_samples if keep_draws else 0)
    )
    _gumbel(
        scores, mask, cascade, num_swaps, num_samples, seed, result.gradient, result.utility, result.kept,
        num_tasks=len(scores), nanoseconds=_nanoseconds(scores.shape, num_swaps, num_samples),
    )  # fmt: skip
    return result


def gumbel_exposures(
    scores: NDArray[Any],
    mask: NDArray[np.bool_],
    rank_weights: Floats,
    *,
    num_swaps: int,
    num_samples: int,
    seed: int,
    keep_draws: bool = False,
) -> tuple[Floats, KeptDraws]:
    """Exposure (query, item) for rank weights (position,), and the draws."""
    exposure = np.zeros(scores.shape)
    kept = _room(scores.shape, num_swaps, num_samples if keep_draws else 0)
    _exposures(
        scores, mask, rank_weights, num_swaps, num_samples, seed, exposure, kept,
        num_tasks=len(scores), nanoseconds=_nanoseconds(scores.shape, num_swaps, num_samples),
    )  # fmt: skip
    return exposure, kept


def _nanoseconds(shape: tuple[int, ...], num_swaps: int, num_samples: int) -> int:
    """About how long one thread takes."""
    return 5 * math.prod(shape) * (1 + min(shape[1], num_swaps)) * num_samples


def _room(shape: tuple[int, ...], num_swaps: int, num_draws: int) -> KeptDraws:
    room = (num_draws, shape[0], min(shape[1], num_swaps + 1))
    return KeptDraws(np.full(room, -1, np.int64), np.full(room, -np.inf))


@njit(parallel=True, nogil=True)
def _gumbel(scores, mask, cascade, num_swaps, num_samples, seed, gradient, utility, kept):
    for query in prange(len(scores)):
        items = np.flatnonzero(mask[query])
        if len(items) > 0:
            _gumbel_query(query, items, scores, cascade, num_swaps, num_samples, seed, gradient, utility, kept)


@njit()
def _gumbel_query(query, items, scores, cascade, num_swaps, num_samples, seed, gradient, utility, kept):
    n, num_terms = len(items), len(cascade.rank_weights)
    own = _gather_cascade(cascade, query, items)
    depth = min(n, num_swaps + 1)
    draws = new_draws(gather(scores[query], items))
    rates = draws.rates if draws.is_linear else draws.log_weights
    placed, ranking, arrivals = np.empty(n, np.bool_), np.empty(depth, np.int64), np.empty(depth)
    factors, slopes, earned = np.empty(num_terms), np.empty((depth, num_terms)), np.empty(depth)
    own_gradient = np.zeros(n)
    total = 0.0
    state = stream(seed, query)
    for sample in range(num_samples):
        state = draw_ranking(state, draws, placed, ranking)
        state = _draw_arrivals(state, draws, placed, ranking, arrivals)
        total += _fill_slopes(own, ranking, min(num_swaps, n - 1), factors, slopes, earned)
        for p in range(depth):
            own_gradient[ranking[p]] += _gradient_of_placed(p, rates, draws.is_linear, own, ranking, arrivals, factors)
        if depth < n:
            _add_gradient_of_unplaced(
                rates, draws.is_linear, own.item_values, placed, arrivals, slopes, earned, own_gradient
            )
        _keep_draw(sample, query, items, draws, ranking, arrivals, kept)
    utility[query] = total / num_samples
    for i in range(n):
        gradient[query, items[i]] = own_gradient[i] / num_samples


@njit()
def _gather_cascade(cascade, query, items):
    """The arrays of one query, (item, term)."""
    shape = (len(items), len(cascade.rank_weights))
    values, keep, add = np.empty(shape), np.empty(shape), np.empty(shape)
    for i in range(shape[0]):
        for t in range(shape[1]):
            values[i, t] = cascade.item_values[t, query, items[i]]
            keep[i, t] = cascade.keep[t, query, items[i]]
            add[i, t] = cascade.add[t, query, items[i]]
    return Cascade(cascade.rank_weights, values, keep, add)


@njit()
def _draw_arrivals(state, draws, placed, ranking, arrivals):
    """When the items of a drawn ranking arrive: times, or noisy scores (minus the log of times) where rates may vanish."""
    depth = len(ranking)
    if not draws.is_linear:
        # The whole race was run in log space: keys are the noisy scores of all items.
        for p in range(depth):
            arrivals[p] = draws.keys[ranking[p]]
        return state
    fill_remaining(draws.rates, placed, ranking, arrivals)
    time = 0.0
    for p in range(depth):
        state, wait = exponential(state)
        time += wait / arrivals[p]
        arrivals[p] = time
    return state


@njit()
def _rate_time(rate, arrival, is_linear):
    """λ_i T_k of an item and an arrival."""
    return rate * arrival if is_linear else math.exp(min(rate - arrival, _LARGEST_LOG))


@njit()
def _fill_slopes(cascade, ranking, num_swaps, factors, slopes, earned):
    """Fill the slopes (θ_k - θ_{k+1}) c_k and what the item at k earns of them, which all items below share; returns the reward."""
    weights, values, keep, add = cascade
    factors[:] = 1.0
    reward = 0.0
    for k in range(len(ranking)):
        item = ranking[k]
        earned[k] = 0.0
        for t in range(len(factors)):
            reward += weights[t, k] * factors[t] * values[item, t]
            slopes[k, t] = (weights[t, k] - weights[t, k + 1]) * factors[t] if k < num_swaps else 0.0
            earned[k] += slopes[k, t] * values[item, t]
            factors[t] = keep[item, t] * factors[t] + add[item, t]
    return reward


@njit()
def _add_gradient_of_unplaced(rates, is_linear, values, placed, arrivals, slopes, earned, gradient):
    """The gradient of the items that the ranking does not hold."""
    num_swaps, num_terms = len(arrivals) - 1, values.shape[1]
    for i in range(len(rates)):
        if placed[i]:
            continue
        total = 0.0
        for k in range(num_swaps):
            swapped = 0.0
            for t in range(num_terms):
                swapped += slopes[k, t] * values[i, t]
            swapped -= earned[k]
            if swapped != 0.0:
                rate_time = _rate_time(rates[i], arrivals[k], is_linear)
                total += swapped * rate_time * math.exp(-rate_time)
        gradient[i] += total


@njit()
def _gradient_of_placed(position, rates, is_linear, cascade, ranking, arrivals, factors):
    """The gradient of an item of the ranking: without it, the items below move up by one."""
    weights, values, keep, add = cascade
    item, num_terms = ranking[position], len(factors)
    factors[:] = 1.0
    total = 0.0
    for k in range(len(ranking) - 1):
        p = k if k < position else k + 1
        other = ranking[p]
        swapped = 0.0
        for t in range(num_terms):
            slope = (weights[t, k] - weights[t, k + 1]) * factors[t]
            swapped += slope * (values[item, t] - values[other, t])
            factors[t] = keep[other, t] * factors[t] + add[other, t]
        if swapped != 0.0:
            rate_time = _rate_time(rates[item], arrivals[p], is_linear)
            total += swapped * rate_time * math.exp(-rate_time)
    return total


@njit()
def _keep_draw(sample, query, items, draws, ranking, arrivals, kept):
    if len(kept.rankings) == 0:
        return
    highest = draws.log_weights.max()
    for p in range(len(ranking)):
        kept.rankings[sample, query, p] = items[ranking[p]]
        kept.noisy_scores[sample, query, p] = highest - math.log(arrivals[p]) if draws.is_linear else arrivals[p]


@njit(parallel=True, nogil=True)
def _exposures(scores, mask, weights, num_swaps, num_samples, seed, exposure, kept):
    for query in prange(len(scores)):
        items = np.flatnonzero(mask[query])
        n = len(items)
        if n == 0:
            continue
        depth = min(n, num_swaps + 1)
        draws = new_draws(gather(scores[query], items))
        rates = draws.rates if draws.is_linear else draws.log_weights
        placed, ranks = np.empty(n, np.bool_), np.empty(n, np.int64)
        ranking, arrivals = np.empty(depth, np.int64), np.empty(depth)
        own_exposure = np.zeros(n)
        state = stream(seed, query)
        for sample in range(num_samples):
            state = draw_ranking(state, draws, placed, ranking)
            state = _draw_arrivals(state, draws, placed, ranking, arrivals)
            ranks[:] = depth
            for p in range(depth):
                ranks[ranking[p]] = p
            for i in range(n):
                for k in range(min(num_swaps, n - 1)):
                    arrival = arrivals[k if k < ranks[i] else k + 1]
                    above = -math.expm1(-_rate_time(rates[i], arrival, draws.is_linear))
                    own_exposure[i] += (weights[k] - weights[k + 1]) * above
            _keep_draw(sample, query, items, draws, ranking, arrivals, kept)
        for i in range(n):
            exposure[query, items[i]] = weights[n - 1] + own_exposure[i] / num_samples
