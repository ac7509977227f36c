"""Expected exposure: exposure compared with that of the ideal policy, which ranks better grades first and shuffles items of one grade."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from rankpolicy.arrays import Array, alike, as_like, clip, is_tensor, masked_fill, namespace
from rankpolicy.fairness.disparity import checked_exposure


def target_exposure(labels: Array, mask: Array, bias: Array) -> Array:
    """The ideal exposure (query, item): items of one label share equally the positions of that label in the best ranking.

    Parameters
    ----------
    labels
        Grades of items (query, item).
    mask
        True at real items (query, item).
    bias
        The position bias (position,) that the exposure was computed with; 0 past its end.

    >>> target_exposure(np.array([[0.0, 1.0, 1.0]]), np.ones((1, 3), bool), np.array([1.0, 0.6, 0.5]))
    array([[0.5, 0.8, 0.8]])
    """
    labels, mask, bias = alike(labels, mask, bias)
    xp = namespace(bias)
    padded = masked_fill(as_like(labels, bias), ~mask, -math.inf)
    # bias summed over the positions before each; the positions of a label run from `first` to `past`.
    summed = xp.cumulative_sum(bias[: labels.shape[-1]], include_initial=True)
    ascending = xp.sort(-padded, axis=-1)
    first, past = (_searched(ascending, -padded, side) for side in ("left", "right"))
    last = len(summed) - 1
    shared = (summed[clip(past, high=last)] - summed[clip(first, high=last)]) / (past - first)
    return masked_fill(shared, ~mask, 0.0)


def _searched(ascending: Array, values: Array, side: Literal["left", "right"]) -> Array:
    """The place of each value in the sorted values of its query (query, item)."""
    if is_tensor(values):
        import torch

        return torch.searchsorted(ascending, values.contiguous(), side=side)
    rows = zip(ascending, values, strict=True)
    return np.stack([np.searchsorted(row, wanted, side=side) for row, wanted in rows])


def ee_d(exposure: Array, mask: Array) -> Array:
    """Expected exposure disparity (Diaz et al. 2020): sum_i e_i² (query,); lower is more equal exposure for all.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    mask
        True at real items (query, item).

    >>> ee_d(np.array([[1.0, 0.5]]), np.ones((1, 2), bool))
    array([1.25])
    """
    exposure, _, mask = checked_exposure(exposure, exposure, mask)
    return (masked_fill(exposure, ~mask, 0.0) ** 2).sum(-1)


def ee_r(exposure: Array, labels: Array, mask: Array, *, bias: Array) -> Array:
    """Expected exposure relevance (Diaz et al. 2020): sum_i e_i e*_i with e* the target exposure (query,); higher is more useful.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    labels
        Grades of items (query, item).
    mask
        True at real items (query, item).
    bias
        The position bias (position,) that the exposure was computed with; 0 past its end.

    >>> bias = np.array([1.0, 0.5])
    >>> ee_r(np.array([[1.0, 0.5]]), np.array([[0.0, 2.0]]), np.ones((1, 2), bool), bias=bias)  # 0.5 + 0.5
    array([1.])
    """
    exposure, labels, mask = checked_exposure(exposure, labels, mask)
    return (masked_fill(exposure, ~mask, 0.0) * target_exposure(labels, mask, as_like(bias, exposure))).sum(-1)


def ee_l(exposure: Array, labels: Array, mask: Array, *, bias: Array) -> Array:
    """Expected exposure loss (Diaz et al. 2020): sum_i (e_i - e*_i)² = EE-D - 2 EE-R + sum_i e*_i² (query,); 0 is ideal.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    labels
        Grades of items (query, item).
    mask
        True at real items (query, item).
    bias
        The position bias (position,) that the exposure was computed with; 0 past its end.

    >>> bias = np.array([1.0, 0.5])
    >>> ee_l(np.array([[1.0, 0.5]]), np.array([[0.0, 2.0]]), np.ones((1, 2), bool), bias=bias)
    array([0.5])
    """
    exposure, labels, mask = checked_exposure(exposure, labels, mask)
    difference = exposure - target_exposure(labels, mask, as_like(bias, exposure))
    return (masked_fill(difference, ~mask, 0.0) ** 2).sum(-1)
