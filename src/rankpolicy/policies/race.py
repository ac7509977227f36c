"""Expected rank weights of a Plackett-Luce policy without sampling, by integrating over time in the race that the policy is.

Item i arrives after an exponential time of rate λ_i = exp(s_i), and the order of arrival is the ranking. So

    exposure_i = E[θ_{rank(i)}] = ∫ λ_i e^{-λ_i t} Σ_c θ_{c+1} P[N_{-i}(t) = c] dt

with N_{-i}(t) the number of other items that have arrived by t: a sum of independent coins p_j = 1 - e^{-λ_j t}. In x = log t the trapezoid
rule converges like e^{-π²/h}; all items share its nodes, and dynamic programs from both ends of the item list leave each item out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from rankpolicy.arrays import (
    Array,
    as_like,
    clip,
    detached,
    log_sum_exp,
    lowest,
    masked_fill,
    namespace,
    on_host,
    to_numpy,
    zeros,
)
from rankpolicy.kernels import HAS_NUMBA, on_gpu


class Quadrature(NamedTuple):
    """Trapezoid nodes x = log t = m * step.

    They start ``before`` ahead of the first arrival, x = -log Σ λ_i; the part before that is summed in closed form, with an error of
    e^{-2 before}. They end ``after`` past the last arrival. Nodes with no item due within 2 * before, or within before + log(items), are
    left out.
    """

    step: float
    before: float
    after: float


FINE = Quadrature(step=0.2, before=12.0, after=3.8)  # 1e-10 in float64
COARSE = Quadrature(step=0.5, before=5.0, after=2.8)  # for training: errors of the gradient are in gradients/exact.py


def exact_exposure(scores: Array, mask: Array, rank_weights: Array, *, quadrature: Quadrature = FINE) -> Array:
    """E[θ_{rank(i)}] (query, item) by the kernel of the device, or by ``race_exposure`` where there is none.

    Autograd follows on a GPU only.
    """
    if on_host(scores) and HAS_NUMBA:
        from rankpolicy.kernels.plackett_luce.race import exposure

        return as_like(exposure(*map(to_numpy, (scores, mask, rank_weights)), quadrature=quadrature), scores)
    if on_gpu(scores) and not scores.requires_grad:
        from rankpolicy.kernels.triton.race import race as race_on_gpu

        race = race_on_gpu(scores, mask, rank_weights, scores, quadrature=quadrature, up_to="exposure")
        return as_like(race.exposure, scores)
    return race_exposure(scores, mask, as_like(rank_weights, scores), quadrature=quadrature)


def race_exposure(scores: Array, mask: Array, rank_weights: Array, *, quadrature: Quadrature = FINE) -> Array:
    """E[θ_{rank(i)}] (query, item) for rank weights θ (position,); differentiable. The readable reference of kernels/plackett_luce/race.py.

    >>> import numpy as np
    >>> race_exposure(np.log([[3.0, 2.0, 1.0]]), np.ones((1, 3), bool), np.array([1.0, 0.0, 0.0])).round(4)  # P(first)
    array([[0.5   , 0.3333, 0.1667]])
    """
    xp, num_items = namespace(scores), scores.shape[-1]
    cutoff = int(xp.nonzero(rank_weights)[0][-1]) + 1 if rank_weights.any() else 1
    weights = as_like(rank_weights[:cutoff], scores)
    shifted = scores - detached(xp.max(masked_fill(scores, ~mask, -math.inf), axis=-1, keepdims=True))
    shifted = masked_fill(shifted, ~mask, -1e4 + lowest(scores))
    nodes = _nodes(detached(shifted), mask, quadrature)
    # The clamps keep λt finite; an item past them has arrived, or never will, for certain.
    rates_t = xp.exp(clip(shifted[:, None, :] + nodes[:, None], -1e4, 30.0))  # (query, node, item)
    arrived = -xp.expm1(-rates_t)
    arriving = xp.where(mask[:, None, :], quadrature.step * rates_t * xp.exp(-rates_t), 0.0)

    # before[i][..., c]: probability that c of the items before i have arrived.
    before = [zeros((*arrived.shape[:2], cutoff), like=scores)]
    before[0][..., 0] = 1.0
    for i in range(num_items - 1):
        p = arrived[..., i, None]
        before.append((1 - p) * before[i] + p * _shifted_up(before[i]))
    # after[..., c]: expected weight of an item that c earlier ones precede, over the arrivals of the items after i.
    after = xp.broadcast_to(weights, before[0].shape)
    exposure: list[Array] = []
    for i in reversed(range(num_items)):
        exposure.append((arriving[..., i] * (before[i] * after).sum(-1)).sum(-1))
        p = arrived[..., i, None]
        after = (1 - p) * after + p * _shifted_down(after)
    # Before the first node at most one item has arrived: there the integrand is λ_i t θ_1, a geometric series over nodes.
    early = quadrature.step * xp.exp(shifted + nodes[0]) / math.expm1(quadrature.step) * weights[0]
    return xp.stack(exposure[::-1], axis=-1) + xp.where(mask, early, 0.0)


def _nodes(shifted: Array, mask: Array, quadrature: Quadrature) -> Array:
    """Nodes (node,) at which some item of some query may arrive."""
    xp = namespace(shifted)
    last_due = -float(shifted[mask].min()) if mask.any() else 0.0
    first = (-float(log_sum_exp(shifted).max()) - quadrature.before) / quadrature.step
    last = (quadrature.after + last_due) / quadrature.step
    nodes = quadrature.step * xp.arange(
        math.floor(first), math.ceil(last) + 1, dtype=shifted.dtype, device=shifted.device
    )
    due = xp.sort(-shifted[mask])  # where each item's arrival centres
    next_due = due[clip(xp.searchsorted(due, nodes - quadrature.after), high=len(due) - 1)]
    # Among n items of equal scores the first arrives log n before its own centre: the nodes around it count as well.
    log_items = math.log(max(int(mask.sum(-1).max()), 1))
    return nodes[next_due <= nodes + max(2 * quadrature.before, quadrature.before + log_items + quadrature.step)]


def _shifted_up(counts: Array) -> Array:
    xp = namespace(counts)
    return xp.concat([xp.zeros_like(counts[..., :1]), counts[..., :-1]], axis=-1)


def _shifted_down(counts: Array) -> Array:
    xp = namespace(counts)
    return xp.concat([counts[..., 1:], xp.zeros_like(counts[..., :1])], axis=-1)
