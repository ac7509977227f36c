"""Attention-weighted rank fairness: whether the groups receive attention in proportion to their shares."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rankpolicy.fairness.disparity import check_exposure
from rankpolicy.fairness.groups import GroupMembers, group_members
from rankpolicy.types import RankPolicyError


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
    given = group_members(groups, mask, num_groups=None if target is None else target.shape[-1])
    attention = given.sums(exposure)
    shown = attention.sum(-1, keepdim=True)
    attention = attention / shown.masked_fill(shown == 0, math.nan)
    shares = group_shares(given, dtype=exposure.dtype) if target is None else checked_target(target).to(exposure.dtype)
    middle = (attention + shares) / 2
    return 1 - (_kl(attention, middle) + _kl(shares, middle)) / (2 * math.log(2))


def group_shares(given: GroupMembers, *, dtype: torch.dtype) -> Tensor:
    """Share of each group among the items of the query (query, group)."""
    sizes = given.sizes.to(dtype)
    return sizes / sizes.sum(-1, keepdim=True).clamp(min=1)


def checked_target(target: Tensor) -> Tensor:
    """The target, if it holds shares."""
    if target.ndim > 2 or (target < 0).any() or ((target.sum(-1) - 1).abs() > 1e-4).any():
        raise RankPolicyError(
            "target must hold shares of the groups, (group,) or (query, group), 0 or more and summing to 1; "
            f"got shape {tuple(target.shape)} with sums from {target.sum(-1).min():g} to {target.sum(-1).max():g}."
        )
    return target


def _kl(shares: Tensor, reference: Tensor) -> Tensor:
    return (torch.xlogy(shares, shares) - torch.xlogy(shares, reference)).sum(-1)
