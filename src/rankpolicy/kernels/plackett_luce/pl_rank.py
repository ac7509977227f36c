"""PL-Rank-3 in one pass over each sample: O(items + cutoff) after the draw, threads over queries."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.plackett_luce.draws import (
    draw_ranking,
    fill_log_remaining,
    fill_remaining,
    gather,
    new_draws,
)
from rankpolicy.kernels.plackett_luce.random_stream import stream

_SMALLEST_LOG = -745.0  # exp of less is 0


class PLRankResult(NamedTuple):
    """Float64 arrays of a batch."""

    gradient: NDArray[np.float64]  # (query, item)
    utility: NDArray[np.float64]  # (query,) mean reward
    rankings: NDArray[
        np.int64
    ]  # (sample, query, position), -1 past the end of a short query; empty unless they were asked for


def pl_rank_queries(
    scores: NDArray[Any],
    mask: NDArray[np.bool_],
    *,
    rank_weights: NDArray[np.float64],
    item_values: NDArray[np.float64],
    num_samples: int,
    seed: int,
    keep_rankings: bool = False,
) -> PLRankResult:
    """Estimate for scores (query, item) and a reward of ``rank_weights`` (term, position) up to its cutoff and ``item_values``
    (term, query, item)."""
    num_queries, width = scores.shape
    depth = rank_weights.shape[1]
    result = PLRankResult(
        np.zeros((num_queries, width)),
        np.zeros(num_queries),
        np.full((num_samples, num_queries, depth) if keep_rankings else (0, 0, 0), -1, np.int64),
    )
    _pl_rank(
        scores, mask, rank_weights, item_values, num_samples, seed, result,
        num_tasks=num_queries, nanoseconds=10 * scores.size * num_samples,
    )  # fmt: skip
    return result


@njit(parallel=True, nogil=True)
def _pl_rank(scores, mask, weights, values, num_samples, seed, result):
    for query in prange(scores.shape[0]):
        items = np.flatnonzero(mask[query])
        if len(items) > 0:
            _pl_rank_query(query, items, scores, weights, values, num_samples, seed, result)


@njit()
def _pl_rank_query(query, items, scores, weights, values, num_samples, seed, result):
    n, num_terms = len(items), len(weights)
    own_values = np.empty((n, num_terms))
    for i in range(n):
        for t in range(num_terms):
            own_values[i, t] = values[t, query, items[i]]
    depth = min(n, weights.shape[1])
    draws = new_draws(gather(scores[query], items))
    placed, ranking = np.empty(n, np.bool_), np.empty(depth, np.int64)
    placed_from, remaining, direct = np.empty(depth + 1), np.empty(depth), np.empty(num_terms)
    gradient = np.zeros(n)
    total = 0.0
    state = stream(seed, query)
    for sample in range(num_samples):
        state = draw_ranking(state, draws, placed, ranking)
        placed_from[depth] = 0.0
        for p in range(depth - 1, -1, -1):
            gained = 0.0
            for t in range(num_terms):
                gained += weights[t, p] * own_values[ranking[p], t]
            placed_from[p] = placed_from[p + 1] + gained
            gradient[ranking[p]] += placed_from[p + 1]
        total += placed_from[0]
        if draws.is_linear:
            fill_remaining(draws.rates, placed, ranking, remaining)
            _add_shares(ranking, placed_from, draws.rates, weights, own_values, placed, remaining, direct, gradient)
        else:
            fill_log_remaining(draws.log_weights, placed, ranking, remaining)
            _add_shares_in_log_space(
                ranking, placed_from, draws.log_weights, weights, own_values, placed, remaining, gradient
            )
        if len(result.rankings) > 0:
            for p in range(depth):
                result.rankings[sample, query, p] = items[ranking[p]]
    result.utility[query] = total / num_samples
    for i in range(n):
        result.gradient[query, items[i]] = gradient[i] / num_samples


@njit()
def _add_shares(ranking, placed_from, rates, weights, values, placed, remaining, direct, gradient):
    """gradient_i += exp(s_i) (ρ_i DR - RI) at min(rank(i), cutoff), with the rates exp(score) themselves."""
    depth, num_terms = len(ranking), len(direct)
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
    for p in range(depth):
        _add_shares_of_item(ranking[p], p, placed_from, scores, weights, values, log_remaining, gradient)
    for i in range(len(scores)):
        if not placed[i]:
            _add_shares_of_item(i, depth - 1, placed_from, scores, weights, values, log_remaining, gradient)


@njit()
def _add_shares_of_item(item, last, placed_from, scores, weights, values, log_remaining, gradient):
    """Add the item's shares from rank ``last`` up; the remaining mass grows towards the top, so shares soon vanish."""
    for p in range(last, -1, -1):
        log_share = scores[item] - log_remaining[p]
        if log_share < _SMALLEST_LOG:
            break
        total = -placed_from[p]
        for t in range(values.shape[1]):
            total += values[item, t] * weights[t, p]
        gradient[item] += math.exp(log_share) * total
