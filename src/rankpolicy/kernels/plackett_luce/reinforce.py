"""Fused REINFORCE: sample, sort, reward and gradient in one pass over each query, threads over queries."""

import math

import numpy as np
from numba import prange

from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.metrics.values import new_query_statistics, rank_discounts, rank_items, ranking_value
from rankpolicy.kernels.plackett_luce.draws import draw_ranking, fill_alias_table, fill_rates
from rankpolicy.kernels.plackett_luce.random_stream import stream

CONTROL_CODES = {"leave_one_out": 0, "mean": 1, "greedy": 2, "none": 3}


def reinforce_queries(scores, labels, mask, *, terms, conventions, num_samples, control, seed, keep_rankings=False):
    """Gradient (query, item) and mean reward (query,) in float64; with ``keep_rankings`` also the rankings (sample, query, position).

    Positions past the end of a short query hold -1.
    """
    num_queries, width = scores.shape
    depth = min(width, int(terms.cutoffs.max()))
    rankings = np.full((num_samples, num_queries, depth) if keep_rankings else (0, 0, 0), -1, np.int64)
    gradient = np.zeros((num_queries, width))
    utility = np.zeros(num_queries)
    _reinforce(
        scores,
        labels,
        mask,
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
        utility,
        rankings,
    )
    return gradient, utility, rankings


@njit(parallel=True)
def _reinforce(
    scores,
    labels,
    mask,
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
    utility,
    rankings_out,
):
    for query in prange(scores.shape[0]):
        items = np.flatnonzero(mask[query])
        n = len(items)
        if n == 0:
            continue
        own_scores, own_labels = np.empty(n), np.empty(n)
        for i in range(n):
            own_scores[i] = scores[query, items[i]]
            own_labels[i] = labels[query, items[i]]
        gains, relevant, stops, divisors = new_query_statistics(
            own_labels, kinds, cutoffs, gain_is_linear, relevant_from, max_label, discounts
        )
        own_depth = min(n, depth)
        rates, keys, keep = np.empty(n), np.empty(n), np.empty(n)
        alias, rest = np.empty(n, np.int64), np.empty(n, np.int64)
        placed = np.empty((num_samples, n), np.bool_)
        is_linear = fill_rates(own_scores, rates)
        if is_linear:
            fill_alias_table(rates, keep, alias, rest)
        # One row more than samples: the last holds the greedy ranking.
        rankings = np.empty((num_samples + 1, own_depth), np.int64)
        rewards = np.empty(num_samples + 1)
        state = stream(seed, query)
        for sample in range(num_samples + 1):
            ranking = rankings[sample]
            if sample < num_samples:
                state = draw_ranking(
                    state, own_scores, rates, is_linear, keep, alias, placed[sample], keys, rest, ranking
                )
            else:
                rank_items(own_scores, own_depth, ranking)
            rewards[sample] = ranking_value(
                kinds,
                cutoffs,
                weights,
                divisors,
                empty_value,
                ranking,
                own_depth,
                gains,
                relevant,
                stops,
                discounts,
            )
        utility[query] = rewards[:num_samples].mean()
        to_advantages(rewards, control)
        own_gradient = np.zeros(n)
        remaining = np.empty(own_depth)
        for sample in range(num_samples):
            # An empty query left out of means has the reward NaN, and nothing to teach.
            if rewards[sample] == 0.0 or math.isnan(rewards[sample]):
                continue
            if is_linear:
                _add_gradient(rewards[sample], rankings[sample], rates, placed[sample], remaining, own_gradient)
            else:
                _add_gradient_in_log_space(
                    rewards[sample], rankings[sample], own_scores, placed[sample], remaining, own_gradient
                )
        for i in range(n):
            gradient[query, items[i]] = own_gradient[i] / num_samples
        for sample in range(len(rankings_out)):
            for p in range(own_depth):
                rankings_out[sample, query, p] = items[rankings[sample, p]]


@njit()
def to_advantages(rewards, control):
    """Rewards of the samples, then of the greedy ranking, become advantages in place (gradients/controls.py)."""
    num_samples = len(rewards) - 1
    mean = rewards[:num_samples].mean()
    for sample in range(num_samples):
        if control == 0:
            rewards[sample] = (rewards[sample] - mean) * num_samples / (num_samples - 1)
        elif control == 1:
            rewards[sample] -= mean
        elif control == 2:
            rewards[sample] -= rewards[num_samples]


@njit(fastmath={"reassoc", "contract"})
def _add_gradient(advantage, ranking, rates, placed, remaining, gradient):
    """gradient += advantage * dlog P/dscores, with exp(score) itself."""
    depth = len(ranking)
    mass = 0.0
    # Without branches: which items are placed is random, and a processor cannot guess it.
    for i in range(len(rates)):
        mass += 0.0 if placed[i] else rates[i]
    for p in range(depth - 1, -1, -1):
        mass += rates[ranking[p]]
        remaining[p] = mass
    inverse = 0.0
    for p in range(depth):
        inverse += advantage / remaining[p]
        gradient[ranking[p]] += advantage - rates[ranking[p]] * inverse
    for i in range(len(rates)):
        gradient[i] -= 0.0 if placed[i] else rates[i] * inverse


@njit()
def _add_gradient_in_log_space(advantage, ranking, scores, placed, log_remaining, gradient):
    """The same for scores whose exponentials cannot share a scale."""
    depth = len(ranking)
    log_mass = -np.inf
    for i in range(len(scores)):
        if not placed[i]:
            log_mass = np.logaddexp(log_mass, scores[i])
    for p in range(depth - 1, -1, -1):
        log_mass = np.logaddexp(log_mass, scores[ranking[p]])
        log_remaining[p] = log_mass
    log_inverse = -np.inf
    for p in range(depth):
        log_inverse = np.logaddexp(log_inverse, -log_remaining[p])
        gradient[ranking[p]] += advantage * (1.0 - math.exp(scores[ranking[p]] + log_inverse))
    for i in range(len(scores)):
        if not placed[i]:
            gradient[i] -= advantage * math.exp(scores[i] + log_inverse)
