"""Exposure of groups compared: equal for all (parity), equal per unit of merit (treatment), or in proportion to their shares (AWRF)."""

from __future__ import annotations

import math

import numpy as np

from rankpolicy.arrays import Array, masked_fill, namespace, x_log_y
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
