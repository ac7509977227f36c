"""Exposure of groups compared: equal for all (parity), equal per unit of merit (treatment), or in proportion to their shares (AWRF)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rankpolicy.fairness.disparity import check_exposure
from rankpolicy.fairness.groups import GroupMembers, group_members, target_shares

# A query where a group is absent (or, for disparate treatment, has zero merit) has the value NaN and is left out of means.


def exposure_difference(exposure: Tensor, groups: Tensor, mask: Tensor) -> Tensor:
    """Demographic parity of exposure (Singh & Joachims 2018): highest minus lowest mean exposure of a group (query,); 0 is parity.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    mask
        True at real items (query, item).

    >>> exposure, mask = torch.tensor([[1.0, 0.6, 0.5]]), torch.ones(1, 3, dtype=torch.bool)
    >>> exposure_difference(exposure, torch.tensor([[0, 0, 1]]), mask)  # 0.8 - 0.5
    tensor([0.3000])
    """
    check_exposure(exposure, exposure, mask)
    members = group_members(groups, mask)
    means = members.means(exposure)
    return _with_all_groups(means.amax(-1) - means.amin(-1), members)


def exposure_ratio(exposure: Tensor, groups: Tensor, mask: Tensor) -> Tensor:
    """Demographic parity of exposure as a ratio: lowest mean exposure of a group over the highest (query,); 1 is parity.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    mask
        True at real items (query, item).

    >>> exposure, mask = torch.tensor([[1.0, 0.6, 0.4]]), torch.ones(1, 3, dtype=torch.bool)
    >>> exposure_ratio(exposure, torch.tensor([[0, 0, 1]]), mask)  # 0.4 / 0.8
    tensor([0.5000])
    """
    check_exposure(exposure, exposure, mask)
    members = group_members(groups, mask)
    return _with_all_groups(_lowest_over_highest(members.means(exposure)), members)


def disparate_treatment(exposure: Tensor, merit: Tensor, groups: Tensor, mask: Tensor) -> Tensor:
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

    >>> exposure, merit = torch.tensor([[1.0, 0.6, 0.5]]), torch.tensor([[3.0, 1.0, 1.0]])
    >>> disparate_treatment(exposure, merit, torch.tensor([[0, 0, 1]]), torch.ones(1, 3, dtype=torch.bool))  # 0.4 / 0.5
    tensor([0.8000])
    """
    check_exposure(exposure, merit, mask)
    members = group_members(groups, mask)
    return _with_all_groups(_lowest_over_highest(_treatment(exposure, merit, members)), members)


def treatment_difference(exposure: Tensor, merit: Tensor, groups: Tensor, mask: Tensor) -> Tensor:
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

    >>> exposure, merit = torch.tensor([[1.0, 0.6, 0.5]]), torch.tensor([[3.0, 1.0, 1.0]])
    >>> treatment_difference(exposure, merit, torch.tensor([[0, 0, 1]]), torch.ones(1, 3, dtype=torch.bool))  # 0.5 - 0.4
    tensor([0.1000])
    """
    check_exposure(exposure, merit, mask)
    members = group_members(groups, mask)
    treatment = _treatment(exposure, merit, members)
    return _with_all_groups(treatment.amax(-1) - treatment.amin(-1), members)


def awrf(exposure: Tensor, groups: Tensor, mask: Tensor, *, target: Tensor | None = None) -> Tensor:
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

    >>> exposure, mask = torch.tensor([[1.0, 0.0]]), torch.ones(1, 2, dtype=torch.bool)
    >>> awrf(exposure, torch.tensor([[0, 1]]), mask)  # a = (1, 0), t = (1/2, 1/2): 1 - log2(4/3) / 2 - (log2(2/3) + log2(2)) / 4
    tensor([0.6887])
    """
    check_exposure(exposure, exposure, mask)
    members = group_members(groups, mask, num_groups=None if target is None else target.shape[-1])
    attention = members.sums(exposure)
    shown = attention.sum(-1, keepdim=True)
    attention = attention / shown.masked_fill(shown == 0, math.nan)
    shares = target_shares(members, target, dtype=exposure.dtype)
    middle = (attention + shares) / 2
    return 1 - (_kl(attention, middle) + _kl(shares, middle)) / (2 * math.log(2))


def _treatment(exposure: Tensor, merit: Tensor, members: GroupMembers) -> Tensor:
    """E / M of each group (query, group)."""
    merits = members.means(merit.to(exposure.dtype))
    return members.means(exposure) / merits.masked_fill(merits == 0, math.nan)


def _lowest_over_highest(values: Tensor) -> Tensor:
    """1 where all are 0: no group is shown less than another."""
    highest = values.amax(-1)
    return (values.amin(-1) / highest).masked_fill(highest == 0, 1.0)


def _with_all_groups(values: Tensor, members: GroupMembers) -> Tensor:
    return values.masked_fill((members.sizes == 0).any(-1), math.nan)


def _kl(shares: Tensor, reference: Tensor) -> Tensor:
    return (torch.xlogy(shares, shares) - torch.xlogy(shares, reference)).sum(-1)
