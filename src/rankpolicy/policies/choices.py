"""Choices one by one: at each position an item among those left, by weight or, with probability ε, by chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankpolicy.arrays import (
    Array,
    Generator,
    arange,
    as_double,
    as_like,
    clip,
    detached,
    exponential,
    gather,
    log_cumsum_exp,
    log_sum_exp,
    lowest,
    masked_fill,
    namespace,
    scatter,
    zeros,
)


class Choices(NamedTuple):
    """The choices that rankings hold, each (..., query, position)."""

    log_prob: Array  # log probability of the choice
    log_by_weight: Array  # log probability of making it by weight
    log_remaining: Array  # log of the summed weights of the items not placed before
    is_item: Array  # whether it is a real item


def sequential_choices(log_weights: Array, mask: Array, rankings: Array, *, epsilon: float | Array) -> Choices:
    """The choices of rankings (..., query, position) for log weights (query, item) and a share ``epsilon`` of chance, () or (query,)."""
    xp = namespace(log_weights)
    chosen, is_item = ranked_log_weights(log_weights, mask, rankings)
    log_remaining = log_remaining_weights(log_weights, mask, rankings)
    share = as_like(epsilon, log_weights).reshape(-1, 1)
    num_left = mask.sum(-1, keepdims=True) - arange(rankings.shape[-1], like=rankings)
    with np.errstate(divide="ignore"):  # of a share of 0 or 1
        by_weight = xp.log1p(-share) + chosen - log_remaining
        by_chance = xp.log(share) - xp.log(as_like(clip(num_left, 1), log_weights))
    return Choices(xp.logaddexp(by_chance, by_weight), by_weight, log_remaining, is_item)


def ranked_log_weights(log_weights: Array, mask: Array, rankings: Array) -> tuple[Array, Array]:
    """Log weight of the item at each position, and whether it is a real item: both (..., query, position)."""
    return gather(_filled(log_weights, mask), rankings), gather(mask, rankings)


def log_remaining_weights(log_weights: Array, mask: Array, rankings: Array) -> Array:
    """log Z_p (..., query, position): log of the summed weights of all items not placed before position p."""
    xp = namespace(log_weights)
    filled = _filled(log_weights, mask)
    suffix = xp.flip(log_cumsum_exp(xp.flip(gather(filled, rankings), axis=-1)), axis=-1)
    if rankings.shape[-1] == log_weights.shape[-1]:
        return suffix
    unplaced = log_sum_exp(scatter(filled, rankings, lowest(log_weights)), keepdims=True)
    return xp.logaddexp(suffix, unplaced)


def summed_shares(log_weights: Array, rankings: Array, log_remaining: Array, amounts: Array) -> Array:
    """Σ_{p <= rank(i)} amounts_p w_i / Z_p (..., query, item); an item that was not placed takes part in every sum."""
    xp, never = namespace(log_weights), lowest(log_weights)
    total = zeros((*rankings.shape[:-1], log_weights.shape[-1]), like=log_weights)
    # In log space: an item's share w_i / Z_p is at most 1, but 1 / Z_p alone may overflow.
    for sign in (1.0, -1.0):
        counts = sign * amounts > 0
        log_amounts = xp.log(xp.where(counts, sign * amounts, 1.0))
        log_sums = log_cumsum_exp(masked_fill(log_amounts - log_remaining, ~counts, never))
        up_to_rank = scatter(xp.broadcast_to(log_sums[..., -1:], total.shape), rankings, log_sums)
        total += sign * xp.exp(log_weights + up_to_rank)
    return total


def add_gumbel_noise(log_weights: Array, *, num_samples: int, generator: Generator | None) -> Array:
    """Log weights with standard Gumbel noise (sample, query, item): sorted, they are draws by weight."""
    # In float64: a float32 exponential can be 0, and its logarithm then ties items at infinity.
    arrivals = exponential((num_samples, *log_weights.shape), like=log_weights, generator=generator)
    return as_double(detached(log_weights)) - namespace(arrivals).log(arrivals)


def _filled(log_weights: Array, mask: Array) -> Array:
    # Finite, not -inf: the backward pass of logcumsumexp turns -inf into NaN.
    return masked_fill(log_weights, ~mask, lowest(log_weights))
