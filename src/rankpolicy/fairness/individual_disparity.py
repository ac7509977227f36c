"""Disparity between items: whether an item gets more exposure per unit of merit than another of no higher merit."""

from __future__ import annotations

import numpy as np

from rankpolicy.arrays import (
    Array,
    as_like,
    clip,
    detached,
    masked_fill,
    namespace,
    on_host,
    to_numpy,
)
from rankpolicy.fairness.disparity import Disparity, checked_exposure, count_reasons
from rankpolicy.kernels import HAS_NUMBA

LEFT_OUT = "fewer than two items with positive merit"

_PAIRS_AT_ONCE = 1 << 24


def individual_disparity(exposure: Array, merit: Array, mask: Array) -> Disparity:
    """How much more exposure a unit of merit earns items of higher merit (Singh & Joachims 2019, eq. 3).

    D = (1 / |H|) sum over (i, j) in H of max(0, e_i / M_i - e_j / M_j), H = {i != j, M_i >= M_j > 0}

    Equal merits give both orders. Gradient: dD/de_i = (#{j : (i, j) in H, x_j < x_i} - #{j : (j, i) in H, x_j > x_i}) / (|H| M_i) with
    x = e / M. A query whose H is empty is left out. O(n log n) on a CPU where numba is installed,
    O(n²) in torch.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    merit
        Merit of items (query, item), 0 or more; see ``merit_of``.
    mask
        True at real items (query, item).

    >>> exposure, merit = np.array([[1.0, 0.6, 0.5]]), np.array([[2.0, 2.0, 1.0]])  # e / M = 0.5, 0.3, 0.5
    >>> disparity = individual_disparity(exposure, merit, np.ones((1, 3), bool))
    >>> disparity.values.round(4), disparity.gradient  # H has (0, 1), (1, 0), (0, 2), (1, 2); only (0, 1) adds, 0.2
    (array([0.05]), array([[ 0.125, -0.125,  0.   ]]))
    """
    exposure, merit, mask = checked_exposure(exposure, merit, mask)
    of_device = compiled if on_host(exposure) and HAS_NUMBA else pairwise
    values, gradient = of_device(detached(exposure), merit, mask)
    is_counted, left_out = count_reasons({LEFT_OUT: (mask & (merit > 0)).sum(-1) < 2})
    return Disparity(values=values, gradient=gradient, is_counted=is_counted, left_out=left_out)


def compiled(exposure: Array, merit: Array, mask: Array) -> tuple[Array, Array]:
    """Values (query,) and gradients (query, item) by the kernel."""
    from rankpolicy.kernels.plackett_luce.disparity import individual_disparities

    values, gradient = individual_disparities(
        *(np.ascontiguousarray(to_numpy(array)) for array in (exposure, merit, mask))
    )
    return as_like(values, exposure), as_like(gradient, exposure)


def pairwise(exposure: Array, merit: Array, mask: Array) -> tuple[Array, Array]:
    """The reference: values (query,) and gradients (query, item) from all pairs, in blocks of queries."""
    queries = max(1, _PAIRS_AT_ONCE // max(1, exposure.shape[-1] ** 2))
    blocks = [slice(first, first + queries) for first in range(0, len(exposure), queries)]
    values, gradients = zip(*(_pairwise_of_block(exposure[b], merit[b], mask[b]) for b in blocks), strict=True)
    xp = namespace(exposure)
    return xp.concat(values), xp.concat(gradients)


def _pairwise_of_block(exposure: Array, merit: Array, mask: Array) -> tuple[Array, Array]:
    xp, has_merit = namespace(exposure), mask & (merit > 0)
    safe_merit = masked_fill(merit, ~has_merit, 1.0)
    treatment = exposure / safe_merit  # (query, item) exposure per unit of merit
    compared = has_merit[:, :, None] & has_merit[:, None, :] & (merit[:, :, None] >= merit[:, None, :])
    compared = compared & ~xp.eye(mask.shape[-1], dtype=xp.bool, device=mask.device)
    num_pairs = as_like(clip(compared.sum((1, 2)), 1), exposure)
    difference = treatment[:, :, None] - treatment[:, None, :]
    is_unfair = compared & (difference > 0)
    values = xp.where(is_unfair, difference, 0.0).sum((1, 2)) / num_pairs
    gradient = as_like(is_unfair.sum(2) - is_unfair.sum(1), exposure) / (num_pairs[:, None] * safe_merit)
    return values, masked_fill(gradient, ~has_merit, 0.0)
