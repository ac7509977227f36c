"""Exposure of a Plackett-Luce policy and the gradient of any function of it, in O(nodes * items * cutoff) per query.

The recursions of policies/race.py, run forwards and backwards at once. With c_i = dΦ/dexposure_i, a_i = λ_i t e^{-λ_i t}, ω_i = step * a_i,

    forwards   F: counts of arrivals with nobody left out       F <- (1 - p) F + p shift(F)
               H: the same, one item left out, weighted c ω     H <- (1 - p) H + p shift(H) + c ω F
    backwards  V: expected rank weight after so many arrivals   V <- (1 - p) V + p V(k + 1)
               U: the same, one item left out, weighted c ω     U <- (1 - p) U + p U(k + 1) + c ω V

    exposure_i += ω_i A_i,  A_i = Σ_k F(k) V(k)
    dΦ/ds_i    += a_i Σ_k [F(k) (U(k + 1) - U(k)) + H(k) (V(k + 1) - V(k))] + c_i ω_i A_i (1 - λ_i t)

Nodes are taken in blocks that fill the processor's vectors (lanes.py): the innermost axis of every array is the node. Arithmetic
follows the dtype of the scores.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.plackett_luce.draws import gather
from rankpolicy.kernels.plackett_luce.lanes import WIDTH, clip, exponential, load, spread, store, total

_LARGEST_LOG = 30.0  # past this, λt is infinite for all purposes
_NEVER = -700.0  # log λt of what never arrives; its exp is still a float64 number


class RaceResult(NamedTuple):
    """Arrays (query, item) in the dtype of the scores."""

    exposure: NDArray[Any]
    gradient: NDArray[Any]  # dΦ/dscores
    curvature: NDArray[Any]  # dexposure_i/dscores_i


class _Buffers(NamedTuple):
    """Working space of one query, flat, the node innermost."""

    coins: NDArray[Any]  # (5, item x node)
    forward: NDArray[
        Any
    ]  # F (item, count, node); never written where there are more counts than items before, so 0 there
    forward_left_out: NDArray[Any]  # H
    backward: NDArray[Any]  # V (count, node); the last count stays 0
    backward_left_out: NDArray[Any]  # U


def race(
    scores: NDArray[Any],
    mask: NDArray[np.bool_],
    rank_weights: NDArray[Any],
    coefficients: NDArray[Any],
    *,
    quadrature: Any,
) -> RaceResult:
    """Exposure for rank weights θ (position,) and dΦ/dscores for ``coefficients`` dΦ/dexposure (query, item).

    ``quadrature`` is that of policies/race.py.
    """
    result = RaceResult(np.zeros_like(scores), np.zeros_like(scores), np.zeros_like(scores))
    nonzero = np.flatnonzero(rank_weights)
    cutoff = int(nonzero[-1]) + 1 if len(nonzero) else 1
    weights = rank_weights[:cutoff].astype(scores.dtype)
    _race(
        scores, mask, weights, coefficients.astype(scores.dtype, copy=False), quadrature, result,
        num_tasks=len(scores), nanoseconds=30 * scores.size * min(scores.shape[1], cutoff),
    )  # fmt: skip
    return result


def exposure(
    scores: NDArray[Any], mask: NDArray[np.bool_], rank_weights: NDArray[Any], *, quadrature: Any
) -> NDArray[Any]:
    """Exposure (query, item) for rank weights θ (position,), in less than half the time of ``race``."""
    result = RaceResult(np.zeros_like(scores), np.zeros((0, 0), scores.dtype), np.zeros((0, 0), scores.dtype))
    nonzero = np.flatnonzero(rank_weights)
    cutoff = int(nonzero[-1]) + 1 if len(nonzero) else 1
    weights = rank_weights[:cutoff].astype(scores.dtype)
    _race(
        scores, mask, weights, scores, quadrature, result,
        num_tasks=len(scores), nanoseconds=12 * scores.size * min(scores.shape[1], cutoff),
    )  # fmt: skip
    return result.exposure


@njit(parallel=True, nogil=True)
def _race(scores, mask, weights, coefficients, quadrature, result):
    for query in prange(scores.shape[0]):
        items = np.flatnonzero(mask[query])
        if len(items) > 0:
            own_scores = gather(scores[query], items)
            own_scores -= own_scores.max()
            is_wide = own_scores.min() < -2 * quadrature.before
            if is_wide:
                # By descending score: at any time the items that may be arriving are neighbours.
                order = np.argsort(-own_scores)
                items, own_scores = items[order], gather(own_scores, order)
            cutoff = min(len(items), len(weights))
            has_gradient = result.gradient.size > 0
            own_coefficients = coefficients[query][items]
            results = _race_query(own_scores, own_coefficients, weights[:cutoff], quadrature, is_wide, has_gradient)
            _scatter(results, query, items, result, has_gradient)


@njit()
def _scatter(results, query, items, result, has_gradient):
    for i in range(len(items)):
        result.exposure[query, items[i]] = results[0, i]
        if has_gradient:
            result.gradient[query, items[i]] = results[1, i]
            result.curvature[query, items[i]] = results[2, i]


@njit()
def _race_query(scores, coefficients, weights, quadrature, is_wide, has_gradient):
    """Exposure, gradient and curvature (3, item) of one query, whose highest score is 0; the scores of a wide one descend."""
    n, step = len(scores), quadrature.step
    buffers = _new_buffers(n, weights)
    results = np.zeros((3, n))
    nodes = np.empty(WIDTH)
    # Before the first node at most one item has arrived: there the integrand is λ_i t θ_1, a geometric series over nodes.
    rates = np.exp(scores)
    m = math.floor((-math.log(rates.sum()) - quadrature.before) / step)
    tail = step * math.exp(m * step) / math.expm1(step) * weights[0]
    for i in range(n):
        early = tail * rates[i]
        results[0, i] = early
        results[1, i] = early * coefficients[i]
        results[2, i] = early
    last = math.ceil((quadrature.after - scores.min()) / step)
    # Items that are further off than this are yet to come: all of them together have arrived with a probability of e^(-2 before).
    far = 2 * quadrature.before + math.log(n)
    first, end, known_first, known_end = 0, 0 if is_wide else n, 0, n
    while m <= last:
        m, num_nodes = _next_nodes(scores, m, last, quadrature, nodes)
        if num_nodes == 0:
            break
        if is_wide:
            first, end = _arriving_items(scores, nodes[0], nodes[num_nodes - 1], quadrature.after, far, first, end)
            if first >= len(weights):
                break
            if first >= end:
                continue
            if first != known_first or end != known_end:
                _clear(buffers, (end - first + 1) * (len(weights) - first) * WIDTH)
                known_first, known_end = first, end
        if has_gradient:
            reached = _add_block(
                scores, coefficients, weights, nodes, num_nodes, step, buffers, results, first, end - first
            )
        else:
            reached = _add_exposure(scores, weights, nodes, num_nodes, step, buffers, results, first, end - first)
        # Once cutoff items have arrived for all but a negligible chance, later nodes add nothing.
        if reached < math.exp(-2 * quadrature.before):
            break
    return results


@njit()
def _arriving_items(scores, first_node, last_node, after, far, first, end):
    """Move on to the items that may arrive at the nodes: those before the first have arrived, those from the end on are yet to come."""
    while first < len(scores) and scores[first] + first_node > after:
        first += 1
    while end < len(scores) and scores[end] + last_node >= -far:
        end += 1
    return first, end


@njit()
def _clear(buffers, count):
    """States before any item, for another number of items or counts."""
    buffers.forward[:count] = 0.0
    buffers.forward[:WIDTH] = 1.0
    buffers.forward_left_out[:count] = 0.0
    buffers.backward[:] = 0.0
    buffers.backward_left_out[:] = 0.0


@njit()
def _new_buffers(n, weights):
    cutoff, dtype = len(weights), weights.dtype
    forward = np.zeros((n + 1) * cutoff * WIDTH, dtype)
    forward[:WIDTH] = 1.0
    backward = np.zeros((cutoff + 1) * WIDTH, dtype)
    return _Buffers(np.empty((5, n * WIDTH), dtype), forward, np.zeros_like(forward), backward, np.zeros_like(backward))


@njit()
def _next_nodes(scores, m, last, quadrature, nodes):
    """Fill ``nodes`` with the next nodes at which some item may arrive; returns the number of the node after them, and their count."""
    step, after = quadrature.step, quadrature.after
    # Among n items of equal scores the first arrives log n before its own centre: the nodes around it count as well.
    before = max(2 * quadrature.before, quadrature.before + math.log(len(scores)) + step)
    filled = 0
    while filled < len(nodes) and m <= last:
        x = m * step
        nearest = np.inf  # how far ahead the next item to arrive is
        for i in range(len(scores)):
            ahead = -scores[i] - x
            if ahead >= -after and ahead < nearest:
                nearest = ahead
        if nearest > before:
            m = max(m + 1, math.floor((x + nearest - before) / step)) if nearest < np.inf else last + 1
            continue
        nodes[filled] = x
        filled += 1
        m += 1
    nodes[filled:] = _NEVER
    return m, filled


@njit(fastmath={"contract"})
def _add_exposure(scores, weights, nodes, num_nodes, step, buffers, results, first, n):
    """What ``_add_block`` adds to the exposure, without the rest."""
    cutoff, row = len(weights) - first, (len(weights) - first) * WIDTH
    coins, F, H, V, _ = buffers
    arrived, waiting, density = coins[0], coins[1], coins[2]
    x, one, steps = load(nodes, 0), spread(1.0), spread(step)
    for i in range(n):
        rate_t = exponential(clip(x + spread(scores[first + i]), _NEVER, _LARGEST_LOG))
        still = exponential(clip(spread(0.0) - rate_t, _NEVER, 0.0))
        store(arrived, i * WIDTH, one - still)
        store(waiting, i * WIDTH, still)
        store(density, i * WIDTH, steps * rate_t * still)
    nothing = load(H, 0)  # the first row of H stays 0
    for i in range(n):
        p, q = load(arrived, i * WIDTH), load(waiting, i * WIDTH)
        f_below = nothing
        for at in range(i * row, i * row + min(i + 2, cutoff) * WIDTH, WIDTH):
            f = load(F, at)
            store(F, at + row, q * f + p * f_below)
            f_below = f
    for k in range(cutoff):
        store(V, k * WIDTH, spread(weights[first + k]))
    for i in range(n - 1, -1, -1):
        p, d = load(arrived, i * WIDTH), load(density, i * WIDTH)
        worth = nothing
        v = load(V, 0)
        for at in range(0, min(i + 1, cutoff) * WIDTH, WIDTH):
            v_above = load(V, at + WIDTH)
            worth = worth + load(F, i * row + at) * v
            store(V, at, v + p * (v_above - v))
            v = v_above
        results[0, first + i] += total(d * worth)
    reached = 0.0
    for k in range(cutoff):
        reached += F[n * row + k * WIDTH + num_nodes - 1]
    return reached


@njit(fastmath={"contract"})
def _add_block(scores, coefficients, weights, nodes, num_nodes, step, buffers, results, first, n):
    """Add the nodes of a block to exposure, gradient and curvature; the chance of fewer than cutoff arrivals at its last node.

    Only the n items from the first on may be arriving; those before it have arrived.
    """
    cutoff, row = len(weights) - first, (len(weights) - first) * WIDTH
    coins, F, H, V, U = buffers
    # p, 1 - p, ω, c ω and 1 - λt of every item at every node.
    arrived, waiting, density, weighted, falling = coins[0], coins[1], coins[2], coins[3], coins[4]
    x, one, steps = load(nodes, 0), spread(1.0), spread(step)
    for i in range(n):
        rate_t = exponential(clip(x + spread(scores[first + i]), _NEVER, _LARGEST_LOG))
        still = exponential(clip(spread(0.0) - rate_t, _NEVER, 0.0))
        d = steps * rate_t * still
        store(arrived, i * WIDTH, one - still)
        store(waiting, i * WIDTH, still)
        store(density, i * WIDTH, d)
        store(weighted, i * WIDTH, spread(np.float64(coefficients[first + i])) * d)
        store(falling, i * WIDTH, one - rate_t)
    nothing = load(H, 0)  # the first row of H stays 0
    for i in range(n):
        p, q, w = load(arrived, i * WIDTH), load(waiting, i * WIDTH), load(weighted, i * WIDTH)
        f_below, h_below = nothing, nothing
        for at in range(i * row, i * row + min(i + 2, cutoff) * WIDTH, WIDTH):
            f, h = load(F, at), load(H, at)
            store(F, at + row, q * f + p * f_below)
            store(H, at + row, q * h + p * h_below + w * f)
            f_below, h_below = f, h
    for k in range(cutoff):
        store(V, k * WIDTH, spread(weights[first + k]))
        store(U, k * WIDTH, nothing)
    for i in range(n - 1, -1, -1):
        p, w, d = load(arrived, i * WIDTH), load(weighted, i * WIDTH), load(density, i * WIDTH)
        worth, slope = nothing, nothing
        v, u = load(V, 0), load(U, 0)
        for at in range(0, min(i + 1, cutoff) * WIDTH, WIDTH):
            f, h = load(F, i * row + at), load(H, i * row + at)
            v_above, u_above = load(V, at + WIDTH), load(U, at + WIDTH)
            v_step, u_step = v_above - v, u_above - u
            worth = worth + f * v
            slope = slope + f * u_step + h * v_step
            store(U, at, u + p * u_step + w * v)
            store(V, at, v + p * v_step)
            v, u = v_above, u_above
        bend = total(d * worth * load(falling, i * WIDTH))
        results[0, first + i] += total(d * worth)
        results[1, first + i] += total(d * slope) / step + coefficients[first + i] * bend
        results[2, first + i] += bend
    reached = 0.0
    for k in range(cutoff):
        reached += F[n * row + k * WIDTH + num_nodes - 1]
    return reached
