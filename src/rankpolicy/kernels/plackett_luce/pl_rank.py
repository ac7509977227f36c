"""PL-Rank-3 in one pass over each sample: O(items + cutoff) after the draw, threads over queries."""

import math

import numpy as np
from numba import prange

from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.plackett_luce.draws import draw_ranking, fill_alias_table, fill_rates
from rankpolicy.kernels.plackett_luce.random_stream import stream

_SMALLEST_LOG = -745.0  # exp of less is 0


def pl_rank_queries(scores, mask, rank_weights, item_values, *, num_samples, seed, keep_rankings=False):
    """Gradient (query, item) and mean reward (query,) in float64; with ``keep_rankings`` also the rankings (sample, query, position).

    ``rank_weights`` (term, position) reach to the cutoff, ``item_values`` are (term, query, item). Positions past the end of a short
    query hold -1.
    """
    num_queries, width = scores.shape
    depth = rank_weights.shape[1]
    rankings = np.full((num_samples, num_queries, depth) if keep_rankings else (0, 0, 0), -1, np.int64)
    gradient, utility = np.zeros((num_queries, width)), np.zeros(num_queries)
    _pl_rank(scores, mask, rank_weights, item_values, num_samples, seed, gradient, utility, rankings)
    return gradient, utility, rankings


@njit(parallel=True)
def _pl_rank(scores, mask, weights, values, num_samples, seed, gradient, utility, rankings_out):
    for query in prange(scores.shape[0]):
        items = np.flatnonzero(mask[query])
        n, num_terms = len(items), len(weights)
        if n == 0:
            continue
        own_scores, own_values = np.empty(n), np.empty((n, num_terms))
        for i in range(n):
            own_scores[i] = scores[query, items[i]]
            for t in range(num_terms):
                own_values[i, t] = values[t, query, items[i]]
        depth = min(n, weights.shape[1])
        rates, keys, keep = np.empty(n), np.empty(n), np.empty(n)
        alias, rest = np.empty(n, np.int64), np.empty(n, np.int64)
        placed = np.empty(n, np.bool_)
        is_linear = fill_rates(own_scores, rates)
        if is_linear:
            fill_alias_table(rates, keep, alias, rest)
        ranking = np.empty(depth, np.int64)
        placed_from, remaining, direct = np.empty(depth + 1), np.empty(depth), np.empty(num_terms)
        own_gradient = np.zeros(n)
        total = 0.0
        state = stream(seed, query)
        for sample in range(num_samples):
            state = draw_ranking(state, own_scores, rates, is_linear, keep, alias, placed, keys, rest, ranking)
            placed_from[depth] = 0.0
            for p in range(depth - 1, -1, -1):
                gained = 0.0
                for t in range(num_terms):
                    gained += weights[t, p] * own_values[ranking[p], t]
                placed_from[p] = placed_from[p + 1] + gained
                own_gradient[ranking[p]] += placed_from[p + 1]
            total += placed_from[0]
            if is_linear:
                _add_shares(ranking, placed_from, rates, weights, own_values, placed, remaining, direct, own_gradient)
            else:
                _add_shares_in_log_space(
                    ranking, placed_from, own_scores, weights, own_values, placed, remaining, own_gradient
                )
            if len(rankings_out) > 0:
                for p in range(depth):
                    rankings_out[sample, query, p] = items[ranking[p]]
        utility[query] = total / num_samples
        for i in range(n):
            gradient[query, items[i]] = own_gradient[i] / num_samples


@njit()
def _add_shares(ranking, placed_from, rates, weights, values, placed, remaining, direct, gradient):
    """gradient_i += exp(s_i) (ρ_i DR - RI) at min(rank(i), cutoff), with exp(score) itself."""
    depth, num_terms = len(ranking), len(direct)
    mass = 0.0
    for i in range(len(rates)):
        if not placed[i]:
            mass += rates[i]
    for p in range(depth - 1, -1, -1):
        mass += rates[ranking[p]]
        remaining[p] = mass
    direct[:] = 0.0
    indirect = 0.0
    for p in range(depth):
        item = ranking[p]
        indirect += placed_from[p] / remaining[p]
        total = -indirect
        for t in range(num_terms):
            direct[t] += weights[t, p] / remaining[p]
            total += values[item, t] * direct[t]
        gradient[item] += rates[item] * total
    for i in range(len(rates)):
        if not placed[i]:
            total = -indirect
            for t in range(num_terms):
                total += values[i, t] * direct[t]
            gradient[i] += rates[i] * total


@njit()
def _add_shares_in_log_space(ranking, placed_from, scores, weights, values, placed, log_remaining, gradient):
    """The same for scores whose exponentials cannot share a scale, in O(items * cutoff) at worst."""
    depth = len(ranking)
    log_mass = -np.inf
    for i in range(len(scores)):
        if not placed[i]:
            log_mass = np.logaddexp(log_mass, scores[i])
    for p in range(depth - 1, -1, -1):
        log_mass = np.logaddexp(log_mass, scores[ranking[p]])
        log_remaining[p] = log_mass
    for p in range(depth):
        _add_shares_of_item(ranking[p], p, placed_from, scores, weights, values, log_remaining, gradient)
    for i in range(len(scores)):
        if not placed[i]:
            _add_shares_of_item(i, depth - 1, placed_from, scores, weights, values, log_remaining, gradient)


@njit()
def _add_shares_of_item(item, last, placed_from, scores, weights, values, log_remaining, gradient):
    """The remaining mass grows towards the top: from some rank up the item's share of it is nothing."""
    for p in range(last, -1, -1):
        log_share = scores[item] - log_remaining[p]
        if log_share < _SMALLEST_LOG:
            break
        total = -placed_from[p]
        for t in range(values.shape[1]):
            total += values[item, t] * weights[t, p]
        gradient[item] += math.exp(log_share) * total
