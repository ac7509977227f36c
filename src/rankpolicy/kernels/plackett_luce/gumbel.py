"""Gradients and exposures that integrate each item's own noise (gradients/gumbel.py), threads over queries.

With T_k = e^{-w_k}, the time at which the k-th of the others arrives in the race of kernels/plackett_luce.py, and λ_i = e^{s_i},

    g(w_k - s_i) = λ_i T_k e^{-λ_i T_k}

so a swap costs one exponential. Given the order, the times between arrivals are independent exponentials with the rate of all that are
still to come: the order is drawn first, at the cost of a few items, and only the times at its top follow.
"""

import math

import numpy as np
from numba import prange

from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.plackett_luce.draws import draw_ranking, fill_alias_table, fill_rates
from rankpolicy.kernels.plackett_luce.random_stream import exponential, stream

_LARGEST_LOG = 30.0  # exp(-e^30) is 0


def gumbel_queries(
    scores, mask, rank_weights, item_values, keep, add, *, num_swaps, num_samples, seed, keep_draws=False
):
    """Gradient (query, item) and mean reward (query,) in float64; with ``keep_draws`` also rankings and noisy scores.

    These are (sample, query, position), one position more than the ``num_swaps`` first ranks at which rank weights fall; past the end of a
    short query they hold -1 and -inf. The other arrays are those of a CascadeForm.
    """
    num_queries, width = scores.shape
    shape = (num_samples, num_queries, min(width, num_swaps + 1)) if keep_draws else (0, 0, 0)
    rankings, noisy_scores = np.full(shape, -1, np.int64), np.full(shape, -np.inf)
    gradient, utility = np.zeros((num_queries, width)), np.zeros(num_queries)
    _gumbel(
        scores,
        mask,
        rank_weights,
        item_values,
        keep,
        add,
        num_swaps,
        num_samples,
        seed,
        gradient,
        utility,
        rankings,
        noisy_scores,
    )
    return gradient, utility, rankings, noisy_scores


def gumbel_exposures(scores, mask, rank_weights, *, num_swaps, num_samples, seed, keep_draws=False):
    """Exposure (query, item) in float64, and the draws as above."""
    num_queries, width = scores.shape
    shape = (num_samples, num_queries, min(width, num_swaps + 1)) if keep_draws else (0, 0, 0)
    rankings, noisy_scores = np.full(shape, -1, np.int64), np.full(shape, -np.inf)
    exposure = np.zeros((num_queries, width))
    _exposures(scores, mask, rank_weights, num_swaps, num_samples, seed, exposure, rankings, noisy_scores)
    return exposure, rankings, noisy_scores


@njit(parallel=True)
def _gumbel(
    scores,
    mask,
    weights,
    values,
    keep,
    add,
    num_swaps,
    num_samples,
    seed,
    gradient,
    utility,
    rankings_out,
    noisy_scores_out,
):
    num_terms = len(weights)
    for query in prange(scores.shape[0]):
        items = np.flatnonzero(mask[query])
        n = len(items)
        if n == 0:
            continue
        own_scores = np.empty(n)
        own_values, own_keep, own_add = (
            np.empty((n, num_terms)),
            np.empty((n, num_terms)),
            np.empty((n, num_terms)),
        )
        for i in range(n):
            own_scores[i] = scores[query, items[i]]
            for t in range(num_terms):
                own_values[i, t] = values[t, query, items[i]]
                own_keep[i, t] = keep[t, query, items[i]]
                own_add[i, t] = add[t, query, items[i]]
        depth = min(n, num_swaps + 1)
        rates, keys, cells = np.empty(n), np.empty(n), np.empty(n)
        alias, rest, placed = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.bool_)
        is_linear = fill_rates(own_scores, rates)
        if is_linear:
            fill_alias_table(rates, cells, alias, rest)
        ranking, arrivals = np.empty(depth, np.int64), np.empty(depth)
        factors, slopes, earned = np.empty(num_terms), np.empty((depth, num_terms)), np.empty(depth)
        own_gradient = np.zeros(n)
        total = 0.0
        state = stream(seed, query)
        for sample in range(num_samples):
            state = draw_ranking(state, own_scores, rates, is_linear, cells, alias, placed, keys, rest, ranking)
            state = _draw_arrivals(state, rates, is_linear, placed, keys, ranking, arrivals)
            total += _swaps_of_the_unplaced(
                weights, own_values, own_keep, own_add, ranking, min(num_swaps, n - 1), factors, slopes, earned
            )
            own_rates = rates if is_linear else own_scores
            for p in range(depth):
                own_gradient[ranking[p]] += _gradient_of_placed(
                    p, own_rates, is_linear, weights, own_values, own_keep, own_add, ranking, arrivals, factors
                )
            if depth < n:
                _add_gradient_of_the_unplaced(
                    own_rates, is_linear, own_values, placed, arrivals, slopes, earned, own_gradient
                )
            _keep_draw(sample, query, items, is_linear, own_scores, ranking, arrivals, rankings_out, noisy_scores_out)
        utility[query] = total / num_samples
        for i in range(n):
            gradient[query, items[i]] = own_gradient[i] / num_samples


@njit()
def _draw_arrivals(state, rates, is_linear, placed, keys, ranking, arrivals):
    """When the items of a drawn ranking arrive: times, or noisy scores (minus the log of times) where rates may vanish."""
    depth = len(ranking)
    if not is_linear:
        # The whole race was run in log space: keys are the noisy scores of all items.
        for p in range(depth):
            arrivals[p] = keys[ranking[p]]
        return state
    mass = 0.0
    for i in range(len(rates)):
        if not placed[i]:
            mass += rates[i]
    for p in range(depth - 1, -1, -1):
        mass += rates[ranking[p]]
        arrivals[p] = mass
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
def _swaps_of_the_unplaced(weights, values, keep, add, ranking, num_swaps, factors, slopes, earned):
    """slopes (θ_k - θ_{k+1}) c_k and what the item at k earns of them, shared by all items below; the reward of the ranking."""
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
def _add_gradient_of_the_unplaced(rates, is_linear, values, placed, arrivals, slopes, earned, gradient):
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
def _gradient_of_placed(position, rates, is_linear, weights, values, keep, add, ranking, arrivals, factors):
    """The same for an item of the ranking: the others below it move up by one."""
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
def _keep_draw(sample, query, items, is_linear, scores, ranking, arrivals, rankings_out, noisy_scores_out):
    if len(rankings_out) == 0:
        return
    highest = scores.max()
    for p in range(len(ranking)):
        rankings_out[sample, query, p] = items[ranking[p]]
        noisy_scores_out[sample, query, p] = highest - math.log(arrivals[p]) if is_linear else arrivals[p]


@njit(parallel=True)
def _exposures(scores, mask, weights, num_swaps, num_samples, seed, exposure, rankings_out, noisy_scores_out):
    for query in prange(scores.shape[0]):
        items = np.flatnonzero(mask[query])
        n = len(items)
        if n == 0:
            continue
        own_scores = np.empty(n)
        for i in range(n):
            own_scores[i] = scores[query, items[i]]
        depth = min(n, num_swaps + 1)
        rates, keys, cells = np.empty(n), np.empty(n), np.empty(n)
        alias, rest, placed = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.bool_)
        ranks = np.empty(n, np.int64)
        is_linear = fill_rates(own_scores, rates)
        if is_linear:
            fill_alias_table(rates, cells, alias, rest)
        own_rates = rates if is_linear else own_scores
        ranking, arrivals = np.empty(depth, np.int64), np.empty(depth)
        own_exposure = np.zeros(n)
        state = stream(seed, query)
        for sample in range(num_samples):
            state = draw_ranking(state, own_scores, rates, is_linear, cells, alias, placed, keys, rest, ranking)
            state = _draw_arrivals(state, rates, is_linear, placed, keys, ranking, arrivals)
            ranks[:] = depth
            for p in range(depth):
                ranks[ranking[p]] = p
            for i in range(n):
                for k in range(min(num_swaps, n - 1)):
                    arrival = arrivals[k if k < ranks[i] else k + 1]
                    above = -math.expm1(-_rate_time(own_rates[i], arrival, is_linear))
                    own_exposure[i] += (weights[k] - weights[k + 1]) * above
            _keep_draw(sample, query, items, is_linear, own_scores, ranking, arrivals, rankings_out, noisy_scores_out)
        for i in range(n):
            exposure[query, items[i]] = weights[n - 1] + own_exposure[i] / num_samples
