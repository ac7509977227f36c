"""Fused REINFORCE: draw, reward and gradient in one pass over each query, threads over queries.

The policy places items one by one: with probability 1 - ε by weight among those left, with probability ε any of those left. With ε = 0 it
is Plackett-Luce. A draw is a Plackett-Luce ranking into which chance choices are woven: these do not look at the ranking, so what is left
of it is still a draw among the items left.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.codes import GREEDY, LEAVE_ONE_OUT, MEAN
from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.metrics.item_order import rank_items
from rankpolicy.kernels.metrics.values import MetricTerms, fill_values, query_statistics, weighted_sum
from rankpolicy.kernels.plackett_luce.draws import (
    draw_ranking,
    fill_log_remaining,
    fill_remaining,
    gather,
    new_draws,
)
from rankpolicy.kernels.plackett_luce.random_stream import stream, uniform

Floats = NDArray[np.float64]


class WeightedQueries(NamedTuple):
    """A padded batch (query, item) and the policy of each query."""

    log_weights: Floats  # (query, item)
    scores: NDArray[Any]  # (query, item) what the greedy list is sorted by: log weights may tie where scores do not
    labels: NDArray[Any]  # (query, item)
    mask: NDArray[np.bool_]  # (query, item)
    epsilons: Floats  # (query,)


class SampleSettings(NamedTuple):
    """How many lists of how many positions, which control variate (codes.py), and the seed."""

    num_samples: int
    depth: int
    control: int
    seed: int


class ReinforceResult(NamedTuple):
    """Float64 arrays of a batch."""

    gradient: Floats  # (query, item) in log weights
    values: Floats  # (query, term) mean value of each term
    rankings: NDArray[
        np.int64
    ]  # (sample, query, position), -1 past the end of a short query; empty unless they were asked for


def reinforce_queries(
    queries: WeightedQueries,
    *,
    terms: MetricTerms,
    num_samples: int,
    control: int,
    seed: int,
    max_positions: int | None = None,
    keep_rankings: bool = False,
) -> ReinforceResult:
    """Estimate dU/dlog weights from ``num_samples`` lists per query of at most ``max_positions`` items."""
    num_queries, width = queries.mask.shape
    depth = min(width, int(terms.cutoffs.max()), max_positions or width)
    result = ReinforceResult(
        np.zeros((num_queries, width)),
        np.zeros((num_queries, len(terms.kinds))),
        np.full((num_samples, num_queries, depth) if keep_rankings else (0, 0, 0), -1, np.int64),
    )
    _reinforce(
        queries, terms, SampleSettings(num_samples, depth, control, seed), result,
        num_tasks=num_queries, nanoseconds=10 * queries.mask.size * num_samples,
    )  # fmt: skip
    return result


@njit(parallel=True, nogil=True)
def _reinforce(queries, terms, settings, result):
    for query in prange(len(queries.mask)):
        items = np.flatnonzero(queries.mask[query])
        if len(items) > 0:
            _reinforce_query(query, items, queries, terms, settings, result)


@njit()
def _reinforce_query(query, items, queries, terms, settings, result):
    n, num_samples, epsilon = len(items), settings.num_samples, queries.epsilons[query]
    depth, num_terms = min(n, settings.depth), len(terms.kinds)
    statistics = query_statistics(gather(queries.labels[query], items), terms)
    draws = new_draws(gather(queries.log_weights[query], items))
    placed = np.empty((num_samples, n), np.bool_)
    # One row more than samples: the last is for the greedy list.
    rankings = np.empty((num_samples + 1, depth), np.int64)
    num_lists = num_samples + (settings.control == GREEDY)
    rewards, values = np.zeros(num_samples + 1), np.empty((num_lists, num_terms))
    _draw_lists(stream(settings.seed, query), epsilon, draws, placed, rankings[:num_samples])
    if num_lists > num_samples:
        rank_items(gather(queries.scores[query], items), depth, rankings[num_samples])
    fill_values(terms, statistics, rankings[:num_lists], depth, values)
    for sample in range(num_lists):
        rewards[sample] = weighted_sum(terms, values[sample])
    for t in range(num_terms):
        result.values[query, t] = values[:num_samples, t].mean()
    _to_advantages(rewards, settings.control)
    gradient, remaining = np.zeros(n), np.empty(depth)
    for sample in range(num_samples):
        # A query that is left out of means has the reward NaN, and nothing to learn from.
        if rewards[sample] == 0.0 or math.isnan(rewards[sample]):
            continue
        if draws.is_linear:
            fill_remaining(draws.rates, placed[sample], rankings[sample], remaining)
            _add_gradient(rewards[sample], epsilon, rankings[sample], draws.rates, placed[sample], remaining, gradient)
        else:
            fill_log_remaining(draws.log_weights, placed[sample], rankings[sample], remaining)
            _add_gradient_in_log_space(
                rewards[sample], epsilon, rankings[sample], draws.log_weights, placed[sample], remaining, gradient
            )
    for i in range(n):
        result.gradient[query, items[i]] = gradient[i] / num_samples
    for sample in range(len(result.rankings)):
        for p in range(depth):
            result.rankings[sample, query, p] = items[rankings[sample, p]]


@njit()
def _draw_lists(state, epsilon, draws, placed, rankings):
    """Fill ``rankings`` (sample, position) and mark their items in ``placed`` (sample, item)."""
    by_weight = np.empty(rankings.shape[1], np.int64)
    for sample in range(len(rankings)):
        if epsilon == 0.0:
            state = draw_ranking(state, draws, placed[sample], rankings[sample])
        else:
            state = draw_ranking(state, draws, placed[sample], by_weight)
            state = _weave_in_chance(state, epsilon, by_weight, placed[sample], rankings[sample])


@njit()
def _weave_in_chance(state, epsilon, by_weight, placed, ranking):
    """Fill ``ranking``: at each position, with probability epsilon any item left, else the next of ``by_weight`` that is left."""
    n = len(placed)
    placed[:] = False
    next_by_weight = 0
    for p in range(len(ranking)):
        state, draw = uniform(state)
        if draw < epsilon:
            # The same draw picks the item: given that it is below epsilon, draw / epsilon is uniform.
            item = int(draw / epsilon * n)
            while placed[item]:
                state, draw = uniform(state)
                item = int(draw * n)
        else:
            while placed[by_weight[next_by_weight]]:
                next_by_weight += 1
            item = by_weight[next_by_weight]
        placed[item] = True
        ranking[p] = item
    return state


@njit()
def _to_advantages(rewards, control):
    """Rewards of the samples, then of the greedy list, become advantages in place (gradients/estimate.py)."""
    num_samples = len(rewards) - 1
    mean = rewards[:num_samples].mean()
    for sample in range(num_samples):
        if control == LEAVE_ONE_OUT:
            rewards[sample] = (rewards[sample] - mean) * num_samples / (num_samples - 1)
        elif control == MEAN:
            rewards[sample] -= mean
        elif control == GREEDY:
            rewards[sample] -= rewards[num_samples]


@njit(fastmath={"reassoc", "contract"})
def _add_gradient(advantage, epsilon, ranking, rates, placed, remaining, gradient):
    """gradient += advantage * dlog P/dlog weights, with the weights themselves (over the largest)."""
    n = len(rates)
    inverse = 0.0
    for p in range(len(ranking)):
        rate = rates[ranking[p]]
        share = advantage
        if epsilon > 0.0:
            # The share of this choice's probability that depends on weights.
            by_weight = (1.0 - epsilon) * rate
            share *= by_weight / (by_weight + epsilon * remaining[p] / (n - p))
        inverse += share / remaining[p]
        gradient[ranking[p]] += share - rate * inverse
    for i in range(n):
        gradient[i] -= 0.0 if placed[i] else rates[i] * inverse


@njit()
def _add_gradient_in_log_space(advantage, epsilon, ranking, log_weights, placed, log_remaining, gradient):
    """The same for weights that cannot share a scale."""
    n = len(log_weights)
    log_inverse = -np.inf
    for p in range(len(ranking)):
        item = ranking[p]
        log_share = 0.0
        if epsilon > 0.0:
            by_weight = math.log(1.0 - epsilon) + log_weights[item] - log_remaining[p]
            log_share = by_weight - np.logaddexp(by_weight, math.log(epsilon / (n - p)))
        log_inverse = np.logaddexp(log_inverse, log_share - log_remaining[p])
        gradient[item] += advantage * (math.exp(log_share) - math.exp(log_weights[item] + log_inverse))
    for i in range(n):
        if not placed[i]:
            gradient[i] -= advantage * math.exp(log_weights[i] + log_inverse)
