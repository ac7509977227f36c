"""Fused REINFORCE for the affinity policy: sample, reward and gradient in one pass over each query, threads over queries.

A draw is a Plackett-Luce ranking by affinity (kernels/plackett_luce.py) into which choices by chance are woven: these do not look at the
ranking, so what is left of it is still a draw among the items left.
"""

import math

import numpy as np
from numba import prange

from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.metrics.values import new_query_statistics, rank_discounts, rank_items, term_value
from rankpolicy.kernels.plackett_luce.draws import draw_ranking, fill_alias_table, fill_rates
from rankpolicy.kernels.plackett_luce.random_stream import stream, uniform
from rankpolicy.kernels.plackett_luce.reinforce import CONTROL_CODES, to_advantages


def affinity_queries(
    scores,
    labels,
    mask,
    *,
    epsilons,
    terms,
    conventions,
    max_positions,
    num_samples,
    control,
    seed,
    keep_rankings=False,
):
    """Gradient (query, item) and mean value of each term (query, term) in float64; with ``keep_rankings`` also the lists (sample, query,
    position), where positions past the end of a short query hold -1."""
    num_queries, width = scores.shape
    depth = min(width, int(terms.cutoffs.max()), max_positions or width)
    rankings = np.full((num_samples, num_queries, depth) if keep_rankings else (0, 0, 0), -1, np.int64)
    gradient = np.zeros((num_queries, width))
    values = np.zeros((num_queries, len(terms.kinds)))
    _reinforce(
        scores.astype(np.float64),
        labels.astype(np.float64),
        mask,
        epsilons.astype(np.float64),
        terms.kinds,
        terms.cutoffs,
        terms.weights,
        conventions.gain == "linear",
        conventions.relevant_from,
        conventions.max_label,
        np.nan if conventions.empty == "skip" else float(conventions.empty),
        rank_discounts(width),
        depth,
        num_samples,
        CONTROL_CODES[control],
        seed,
        gradient,
        values,
        rankings,
    )
    return gradient, values, rankings


@njit(parallel=True)
def _reinforce(
    scores,
    labels,
    mask,
    epsilons,
    kinds,
    cutoffs,
    weights,
    gain_is_linear,
    relevant_from,
    max_label,
    empty_value,
    discounts,
    depth,
    num_samples,
    control,
    seed,
    gradient,
    values,
    rankings_out,
):
    for query in prange(scores.shape[0]):
        items = np.flatnonzero(mask[query])
        n = len(items)
        if n == 0:
            continue
        own_scores, own_labels, log_affinities = np.empty(n), np.empty(n), np.empty(n)
        for i in range(n):
            own_scores[i] = scores[query, items[i]]
            own_labels[i] = labels[query, items[i]]
            log_affinities[i] = min(own_scores[i], 0.0) - math.log1p(math.exp(-abs(own_scores[i])))
        gains, relevant, stops, divisors = new_query_statistics(
            own_labels, kinds, cutoffs, gain_is_linear, relevant_from, max_label, discounts
        )
        epsilon = epsilons[query]
        own_depth = min(n, depth)
        rates, keys, keep = np.empty(n), np.empty(n), np.empty(n)
        alias, rest = np.empty(n, np.int64), np.empty(n, np.int64)
        placed = np.empty((num_samples, n), np.bool_)
        by_affinity = np.empty(own_depth, np.int64)
        is_linear = fill_rates(log_affinities, rates)
        if is_linear:
            fill_alias_table(rates, keep, alias, rest)
        # One row more than samples: the last holds the greedy list.
        rankings = np.empty((num_samples + 1, own_depth), np.int64)
        rewards = np.zeros(num_samples + 1)
        state = stream(seed, query)
        for sample in range(num_samples + 1):
            ranking = rankings[sample]
            if sample < num_samples:
                state = draw_ranking(
                    state, log_affinities, rates, is_linear, keep, alias, placed[sample], keys, rest, by_affinity
                )
                state = _weave_in_chance(state, epsilon, by_affinity, placed[sample], ranking)
            else:
                rank_items(own_scores, own_depth, ranking)
            for t in range(len(kinds)):
                value = term_value(
                    kinds[t],
                    cutoffs[t],
                    divisors[t],
                    empty_value,
                    ranking,
                    own_depth,
                    gains,
                    relevant,
                    stops,
                    discounts,
                )
                rewards[sample] += weights[t] * value
                if sample < num_samples:
                    values[query, t] += value / num_samples
        to_advantages(rewards, control)
        own_gradient = np.zeros(n)
        remaining = np.empty(own_depth)
        for sample in range(num_samples):
            # An empty query left out of means has the reward NaN, and nothing to teach.
            if rewards[sample] == 0.0 or math.isnan(rewards[sample]):
                continue
            if is_linear:
                _add_gradient(
                    rewards[sample], epsilon, rankings[sample], rates, placed[sample], remaining, own_gradient
                )
            else:
                _add_gradient_in_log_space(
                    rewards[sample], epsilon, rankings[sample], log_affinities, placed[sample], remaining, own_gradient
                )
        for i in range(n):
            # dlog sigmoid(s) / ds = sigmoid(-s); -expm1 of the logarithm keeps the digits that 1 - affinity would lose.
            gradient[query, items[i]] = own_gradient[i] * -math.expm1(log_affinities[i]) / num_samples
        for sample in range(len(rankings_out)):
            for p in range(own_depth):
                rankings_out[sample, query, p] = items[rankings[sample, p]]


@njit()
def _weave_in_chance(state, epsilon, by_affinity, placed, ranking):
    """Fill ``ranking``: at each position, with probability epsilon any item left, else the next of ``by_affinity`` that is left."""
    if epsilon == 0.0:
        ranking[:] = by_affinity
        return state
    n = len(placed)
    placed[:] = False
    next_by_affinity = 0
    for p in range(len(ranking)):
        state, draw = uniform(state)
        if draw < epsilon:
            # The same draw says which item: given that it is below epsilon, draw / epsilon is uniform.
            item = int(draw / epsilon * n)
            while placed[item]:
                state, draw = uniform(state)
                item = int(draw * n)
        else:
            while placed[by_affinity[next_by_affinity]]:
                next_by_affinity += 1
            item = by_affinity[next_by_affinity]
        placed[item] = True
        ranking[p] = item
    return state


@njit(fastmath={"reassoc", "contract"})
def _add_gradient(advantage, epsilon, ranking, rates, placed, remaining, gradient):
    """gradient += advantage * dlog P/dlog affinities, with the affinities themselves (over the largest)."""
    n, depth = len(rates), len(ranking)
    mass = 0.0
    # Without branches: which items are placed is random, and a processor cannot guess it.
    for i in range(n):
        mass += 0.0 if placed[i] else rates[i]
    for p in range(depth - 1, -1, -1):
        mass += rates[ranking[p]]
        remaining[p] = mass
    inverse = 0.0
    for p in range(depth):
        rate = rates[ranking[p]]
        by_affinity = (1.0 - epsilon) * rate
        # The share of this choice's probability that depends on affinities.
        share = advantage * by_affinity / (by_affinity + epsilon * remaining[p] / (n - p))
        inverse += share / remaining[p]
        gradient[ranking[p]] += share - rate * inverse
    for i in range(n):
        gradient[i] -= 0.0 if placed[i] else rates[i] * inverse


@njit()
def _add_gradient_in_log_space(advantage, epsilon, ranking, log_affinities, placed, log_remaining, gradient):
    """The same for affinities that cannot share a scale."""
    n, depth = len(log_affinities), len(ranking)
    log_mass = -np.inf
    for i in range(n):
        if not placed[i]:
            log_mass = np.logaddexp(log_mass, log_affinities[i])
    for p in range(depth - 1, -1, -1):
        log_mass = np.logaddexp(log_mass, log_affinities[ranking[p]])
        log_remaining[p] = log_mass
    log_inverse = -np.inf
    for p in range(depth):
        item = ranking[p]
        by_affinity = math.log(1.0 - epsilon) + log_affinities[item] - log_remaining[p]
        log_share = by_affinity - np.logaddexp(by_affinity, math.log(epsilon / (n - p)))
        log_inverse = np.logaddexp(log_inverse, log_share - log_remaining[p])
        gradient[item] += advantage * (math.exp(log_share) - math.exp(log_affinities[item] + log_inverse))
    for i in range(n):
        if not placed[i]:
            gradient[i] -= advantage * math.exp(log_affinities[i] + log_inverse)
