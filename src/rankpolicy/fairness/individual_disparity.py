"""Disparity between items: whether an item gets more exposure per unit of merit than another of no higher merit."""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.fairness.disparity import Disparity, check_exposure, count_reasons
from rankpolicy.kernels import HAS_NUMBA

LEFT_OUT = "fewer than two items with positive merit"

_PAIRS_AT_ONCE = 1 << 24


def individual_disparity(exposure: Tensor, merit: Tensor, mask: Tensor) -> Disparity:
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

    >>> exposure, merit = torch.tensor([[1.0, 0.6, 0.5]]), torch.tensor([[2.0, 2.0, 1.0]])  # e / M = 0.5, 0.3, 0.5
    >>> disparity = individual_disparity(exposure, merit, torch.ones(1, 3, dtype=torch.bool))
    >>> disparity.values, disparity.gradient  # H has (0, 1), (1, 0), (0, 2), (1, 2); only (0, 1) adds, 0.2
    (tensor([0.0500]), tensor([[ 0.1250, -0.1250,  0.0000]]))
    """
    check_exposure(exposure, merit, mask)
    of_device = compiled if exposure.device.type == "cpu" and HAS_NUMBA else pairwise
    values, gradient = of_device(exposure.detach(), merit.to(exposure.dtype), mask)
    is_counted, left_out = count_reasons({LEFT_OUT: (mask & (merit > 0)).sum(-1) < 2})
    return Disparity(values=values, gradient=gradient, is_counted=is_counted, left_out=left_out)


def compiled(exposure: Tensor, merit: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Values (query,) and gradients (query, item) by the kernel."""
    from rankpolicy.kernels.plackett_luce.disparity import individual_disparities

    values, gradient = individual_disparities(*(x.contiguous().numpy() for x in (exposure, merit, mask)))
    return torch.from_numpy(values).to(exposure.dtype), torch.from_numpy(gradient).to(exposure.dtype)


def pairwise(exposure: Tensor, merit: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The reference: values (query,) and gradients (query, item) from all pairs, in blocks of queries."""
    queries = max(1, _PAIRS_AT_ONCE // max(1, exposure.shape[-1] ** 2))
    blocks = zip(*(torch.split(array, queries) for array in (exposure, merit, mask)), strict=True)
    values, gradients = zip(*(_pairwise_of_block(*block) for block in blocks), strict=True)
    return torch.cat(values), torch.cat(gradients)


def _pairwise_of_block(exposure: Tensor, merit: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    has_merit = mask & (merit > 0)
    safe_merit = merit.masked_fill(~has_merit, 1.0)
    treatment = exposure / safe_merit  # (query, item) exposure per unit of merit
    compared = has_merit[:, :, None] & has_merit[:, None, :] & (merit[:, :, None] >= merit[:, None, :])
    compared = compared & ~torch.eye(mask.shape[-1], dtype=torch.bool, device=mask.device)
    num_pairs = compared.sum((1, 2)).clamp(min=1).to(exposure.dtype)
    difference = treatment[:, :, None] - treatment[:, None, :]
    is_unfair = compared & (difference > 0)
    values = difference.where(is_unfair, 0.0).sum((1, 2)) / num_pairs
    gradient = (is_unfair.sum(2) - is_unfair.sum(1)) / (num_pairs[:, None] * safe_merit)
    return values, gradient.to(exposure.dtype).masked_fill(~has_merit, 0.0)
