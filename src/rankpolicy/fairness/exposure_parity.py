"""Exposure of groups compared: equal for all (parity), equal per unit of merit (treatment), or in proportion to their shares (AWRF).

Expected exposure: exposure compared with that of the ideal policy, which ranks better grades first and shuffles items of one grade.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from rankpolicy.arrays import Array, alike, as_like, clip, is_tensor, masked_fill, namespace, x_log_y
from rankpolicy.fairness.disparity import checked_exposure
from rankpolicy.fairness.groups import GroupMembers, group_members, target_shares

# A query where a group is absent (or, for disparate treatment, has zero merit) has the value NaN and is left out of means.


def exposure_difference(exposure: Array, groups: Array, mask: Array) -> Array:
    """Demographic parity of exposure (Singh & Joachims 2018): highest minus lowest mean exposure of a group (query,); 0 is parity.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    mask
        True at real items (query, item).

    >>> exposure, mask = np.array([[1.0, 0.6, 0.5]]), np.ones((1, 3), bool)
    >>> exposure_difference(exposure, np.array([[0, 0, 1]]), mask)  # 0.8 - 0.5
    array([0.3])
    """
    exposure, _, mask = checked_exposure(exposure, exposure, mask)
    members = group_members(groups, mask)
    means = members.means(exposure)
    return _with_all_groups(_range(means), members)


def exposure_ratio(exposure: Array, groups: Array, mask: Array) -> Array:
    """Demographic parity of exposure as a ratio: lowest mean exposure of a group over the highest (query,); 1 is parity.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    mask
        True at real items (query, item).

    >>> exposure, mask = np.array([[1.0, 0.6, 0.4]]), np.ones((1, 3), bool)
    >>> exposure_ratio(exposure, np.array([[0, 0, 1]]), mask)  # 0.4 / 0.8
    array([0.5])
    """
    exposure, _, mask = checked_exposure(exposure, exposure, mask)
    members = group_members(groups, mask)
    return _with_all_groups(_lowest_over_highest(members.means(exposure)), members)


def disparate_treatment(exposure: Array, merit: Array, groups: Array, mask: Array) -> Array:
    """Disparate treatment ratio (Singh & Joachims 2018): lowest E / M of a group over the highest (query,); 1 is equal treatment.

    E and M are means over the members of a group. Unlike a disparity it does not depend on which group has more merit.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    merit
        Merit of items (query, item), 0 or more; see ``merit_of``.
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    mask
        True at real items (query, item).

    >>> exposure, merit = np.array([[1.0, 0.6, 0.5]]), np.array([[3.0, 1.0, 1.0]])
    >>> disparate_treatment(exposure, merit, np.array([[0, 0, 1]]), np.ones((1, 3), bool))  # 0.4 / 0.5
    array([0.8])
    """
    exposure, merit, mask = checked_exposure(exposure, merit, mask)
    members = group_members(groups, mask)
    return _with_all_groups(_lowest_over_highest(_treatment(exposure, merit, members)), members)


def treatment_difference(exposure: Array, merit: Array, groups: Array, mask: Array) -> Array:
    """Disparate treatment as a difference: highest minus lowest E / M of a group (query,); 0 is equal treatment.

    E and M are means over the members of a group. For two groups it is abs(E_1 / M_1 - E_0 / M_0), where ``group_disparity`` counts the
    difference only if the group of higher merit has more.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    merit
        Merit of items (query, item), 0 or more; see ``merit_of``.
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    mask
        True at real items (query, item).

    >>> exposure, merit = np.array([[1.0, 0.6, 0.5]]), np.array([[3.0, 1.0, 1.0]])
    >>> treatment_difference(exposure, merit, np.array([[0, 0, 1]]), np.ones((1, 3), bool))  # 0.5 - 0.4
    array([0.1])
    """
    exposure, merit, mask = checked_exposure(exposure, merit, mask)
    members = group_members(groups, mask)
    treatment = _treatment(exposure, merit, members)
    return _with_all_groups(_range(treatment), members)


def awrf(exposure: Array, groups: Array, mask: Array, *, target: Array | None = None) -> Array:
    """AWRF (Sapiezynski et al. 2019) as the TREC Fair Ranking track measures it: 1 - JS(a, t) in bits (query,); 1 is fair, 0 the worst.

    a are the shares of the groups in all exposure, t the shares they should have: JS(a, t) = KL(a, m) / 2 + KL(t, m) / 2, m = (a + t) / 2.
    NaN where nothing is shown.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    mask
        True at real items (query, item).
    target
        Shares that the groups should have, (group,) or (query, group), summing to 1; by default those among the query's items.

    >>> exposure, mask = np.array([[1.0, 0.0]]), np.ones((1, 2), bool)
    >>> awrf(exposure, np.array([[0, 1]]), mask).round(4)  # a = (1, 0), t = (1/2, 1/2): 1 - log2(4/3) / 2 - (log2(2/3) + log2(2)) / 4
    array([0.6887])
    """
    exposure, _, mask = checked_exposure(exposure, exposure, mask)
    members = group_members(groups, mask, num_groups=None if target is None else np.shape(target)[-1])
    attention = members.sums(exposure)
    shown = attention.sum(-1, keepdims=True)
    attention = attention / masked_fill(shown, shown == 0, math.nan)
    shares = target_shares(members, target, like=exposure)
    middle = (attention + shares) / 2
    return 1 - (_kl(attention, middle) + _kl(shares, middle)) / (2 * math.log(2))


def _treatment(exposure: Array, merit: Array, members: GroupMembers) -> Array:
    """E / M of each group (query, group)."""
    merits = members.means(merit)
    return members.means(exposure) / masked_fill(merits, merits == 0, math.nan)


def _lowest_over_highest(values: Array) -> Array:
    """1 where all are 0: no group is shown less than another."""
    xp = namespace(values)
    highest = xp.max(values, axis=-1)
    return masked_fill(xp.min(values, axis=-1) / masked_fill(highest, highest == 0, 1.0), highest == 0, 1.0)


def _range(values: Array) -> Array:
    xp = namespace(values)
    return xp.max(values, axis=-1) - xp.min(values, axis=-1)


def _with_all_groups(values: Array, members: GroupMembers) -> Array:
    return masked_fill(values, (members.sizes == 0).any(-1), math.nan)


def _kl(shares: Array, reference: Array) -> Array:
    return (x_log_y(shares, shares) - x_log_y(shares, reference)).sum(-1)


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
