"""Exposure of a Plackett-Luce policy and the gradient of any function of it, in O(nodes * items * cutoff) a query.

The recursions of policies/race.py, run forwards and backwards at once. With c_i = dΦ/dexposure_i, a_i = λ_i t e^{-λ_i t}, ω_i = step * a_i,

    forwards   F: counts of arrivals with nobody left out       F <- (1 - p) F + p shift(F)
               H: the same, one item left out, weighted c ω     H <- (1 - p) H + p shift(H) + c ω F
    backwards  V: expected rank weight after so many arrivals   V <- (1 - p) V + p V(k + 1)
               U: the same, one item left out, weighted c ω     U <- (1 - p) U + p U(k + 1) + c ω V

    exposure_i += ω_i A_i,  A_i = Σ_k F(k) V(k)
    dΦ/ds_i    += a_i Σ_k [F(k) (U(k + 1) - U(k)) + H(k) (V(k + 1) - V(k))] + c_i ω_i A_i (1 - λ_i t)

Nodes are taken in blocks that fill the processor's vectors: the innermost axis of every array is the node. Arithmetic follows the dtype
of the scores.
"""

import math

import numba
import numpy as np

_BLOCK = 24  # nodes handled side by side
_LARGEST_LOG = 30.0  # past this, λt is infinite for all purposes
_LARGEST_EXPONENT = 600.0  # exp of this and of its negative are float64 numbers


def race(scores, mask, rank_weights, coefficients, *, quadrature):
    """Exposure, dΦ/dscores and its diagonal dexposure_i/dscores_i, each (query, item) in the dtype of ``scores``."""
    exposure, gradient, curvature = (np.zeros_like(scores) for _ in range(3))
    nonzero = np.flatnonzero(rank_weights)
    cutoff = int(nonzero[-1]) + 1 if len(nonzero) else 1
    _race(
        scores,
        mask,
        rank_weights[:cutoff].astype(scores.dtype),
        coefficients.astype(scores.dtype, copy=False),
        quadrature.step,
        quadrature.before,
        quadrature.after,
        exposure,
        gradient,
        curvature,
    )
    return exposure, gradient, curvature


@numba.njit(cache=True, parallel=True, error_model="numpy")
def _race(scores, mask, weights, coefficients, step, before, after, exposure, gradient, curvature):
    for query in numba.prange(scores.shape[0]):
        items = np.flatnonzero(mask[query])
        n = len(items)
        if n == 0:
            continue
        own_scores = np.empty(n)
        for i in range(n):
            own_scores[i] = scores[query, items[i]]
        own_scores -= own_scores.max()
        own_coefficients = coefficients[query][items]
        cutoff = min(n, len(weights))
        shape = (n, cutoff, _BLOCK)
        forward, forward_left_out = np.empty(shape, scores.dtype), np.empty(shape, scores.dtype)
        results = np.zeros((3, n))
        nodes = np.empty(_BLOCK)
        # Before the first node at most one item has arrived: there the integrand is λ_i t θ_1, a geometric series over nodes.
        total_rate = np.exp(own_scores).sum()
        m = math.floor((-math.log(total_rate) - before) / step)
        tail = step * math.exp(m * step) / math.expm1(step) * weights[0]
        for i in range(n):
            early = tail * math.exp(own_scores[i])
            results[0, i] = early
            results[1, i] = early * own_coefficients[i]
            results[2, i] = early
        last = math.ceil((after - own_scores.min()) / step)
        while m <= last:
            m, num_nodes = _next_nodes(own_scores, m, last, step, 2 * before, after, nodes)
            if num_nodes == 0:
                break
            reached = _add_block(
                own_scores,
                own_coefficients,
                weights[:cutoff],
                nodes[:num_nodes],
                step,
                forward,
                forward_left_out,
                results,
            )
            # Once cutoff items have arrived for all but a negligible chance, later nodes add nothing.
            if reached < math.exp(-2 * before):
                break
        for i in range(n):
            exposure[query, items[i]] = results[0, i]
            gradient[query, items[i]] = results[1, i]
            curvature[query, items[i]] = results[2, i]


@numba.njit(cache=True)
def _next_nodes(scores, m, last, step, before, after, nodes):
    """Fill ``nodes`` with the next nodes at which some item may arrive; the number of the node after them, and their count."""
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
    return m, filled


@numba.njit(cache=True, error_model="numpy", fastmath={"contract"})
def _add_block(scores, coefficients, weights, nodes, step, F, H, results):
    """Add the nodes of a block to exposure, gradient and curvature; the chance of fewer than cutoff arrivals at its last node."""
    n, cutoff, num_nodes = len(scores), len(weights), len(nodes)
    dtype = F.dtype
    arrived, waiting = np.zeros((n, _BLOCK), dtype), np.ones((n, _BLOCK), dtype)
    density, weighted = np.zeros((n, _BLOCK), dtype), np.zeros((n, _BLOCK), dtype)
    rates_t = np.zeros((n, _BLOCK))
    # One exponential fewer an item and node, unless scores lie so far apart that a product would overflow or vanish.
    is_narrow = nodes[num_nodes - 1] - scores.min() < _LARGEST_EXPONENT
    times = np.exp(nodes) if is_narrow else nodes
    for i in range(n):
        rate = math.exp(scores[i]) if is_narrow else 0.0
        for b in range(num_nodes):
            rate_t = rate * times[b] if is_narrow else math.exp(min(scores[i] + nodes[b], _LARGEST_LOG))
            still = math.exp(-rate_t)
            rates_t[i, b] = rate_t
            waiting[i, b] = still
            arrived[i, b] = 1.0 - still
            density[i, b] = rate_t * still
            weighted[i, b] = coefficients[i] * step * density[i, b]
    counts, counts_left_out = np.zeros((cutoff, _BLOCK), dtype), np.zeros((cutoff, _BLOCK), dtype)
    counts[0] = 1.0
    for i in range(n):
        p, q, w = arrived[i], waiting[i], weighted[i]
        for k in range(min(i, cutoff - 1), -1, -1):
            for b in range(_BLOCK):
                F[i, k, b] = counts[k, b]
                H[i, k, b] = counts_left_out[k, b]
        for k in range(min(i + 1, cutoff - 1), 0, -1):
            for b in range(_BLOCK):
                counts_left_out[k, b] = (
                    q[b] * counts_left_out[k, b] + p[b] * counts_left_out[k - 1, b] + w[b] * counts[k, b]
                )
                counts[k, b] = q[b] * counts[k, b] + p[b] * counts[k - 1, b]
        for b in range(_BLOCK):
            counts_left_out[0, b] = q[b] * counts_left_out[0, b] + w[b] * counts[0, b]
            counts[0, b] = q[b] * counts[0, b]
    V, U = np.zeros((cutoff + 1, _BLOCK), dtype), np.zeros((cutoff + 1, _BLOCK), dtype)
    for k in range(cutoff):
        V[k] = weights[k]
    total, slope = np.empty(_BLOCK, dtype), np.empty(_BLOCK, dtype)
    for i in range(n - 1, -1, -1):
        p, q, w = arrived[i], waiting[i], weighted[i]
        total[:] = 0.0
        slope[:] = 0.0
        for k in range(min(i, cutoff - 1) + 1):
            for b in range(_BLOCK):
                f = F[i, k, b]
                total[b] += f * V[k, b]
                slope[b] += f * (U[k + 1, b] - U[k, b]) + H[i, k, b] * (V[k + 1, b] - V[k, b])
        for k in range(min(i + 1, cutoff)):
            for b in range(_BLOCK):
                U[k, b] = q[b] * U[k, b] + p[b] * U[k + 1, b] + w[b] * V[k, b]
                V[k, b] = q[b] * V[k, b] + p[b] * V[k + 1, b]
        for b in range(num_nodes):
            weight = step * density[i, b] * total[b]
            bend = weight * (1.0 - rates_t[i, b])
            results[0, i] += weight
            results[1, i] += density[i, b] * slope[b] + coefficients[i] * bend
            results[2, i] += bend
    reached = 0.0
    for k in range(cutoff):
        reached += counts[k, num_nodes - 1]
    return reached
