"""Disparity between groups: whether a group gets more exposure per unit of merit than another of no higher merit."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from rankpolicy.fairness.disparity import Disparity, check_exposure, count_reasons
from rankpolicy.fairness.groups import group_members
from rankpolicy.types import RankPolicyError

Form = Literal["means", "cross_multiplied"]

ABSENT, ZERO_MERIT = "a group is absent", "a group has zero merit"


def group_disparity(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor,
    mask: Tensor,
    *,
    form: Form = "means",
    amortized: bool = False,
    num_groups: int | None = None,
    query_weights: Tensor | None = None,
) -> Disparity:
    """How much more exposure a unit of merit earns the group of higher merit (Singh & Joachims 2019, eq. 4).

    With E and M the **means** of exposure and merit over the members of a group, and M_a >= M_b,

    - ``"means"``: d = E_a / M_a - E_b / M_b; a query where a group is absent or has zero merit is left out;
    - ``"cross_multiplied"``: d = M_b E_a - M_a E_b; no division, so only absent groups leave a query out;

    D = max(0, d), and abs(d) where M_a = M_b. More than two groups: the mean over all pairs {a, b}, each taken once.

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
    form
        ``"means"`` or ``"cross_multiplied"``, as above.
    amortized
        Whether d and M are averaged over queries before the maximum: what a group loses on one query it may gain on another.
    num_groups
        How many groups there are, where a batch may lack some; by default the highest code plus one, at least 2.
    query_weights
        Weights of the queries (query,) in the averages of an amortized disparity; None weighs all alike. Others have one value per query,
        whatever its weight.

    >>> exposure, merit = torch.tensor([[1.0, 0.6, 0.3]]), torch.tensor([[3.0, 1.0, 1.0]])
    >>> groups, mask = torch.tensor([[0, 0, 1]]), torch.ones(1, 3, dtype=torch.bool)
    >>> disparity = group_disparity(exposure, merit, groups, mask)
    >>> disparity.values, disparity.gradient  # 0.8 / 2 - 0.3 / 1
    (tensor([0.1000]), tensor([[ 0.2500,  0.2500, -1.0000]]))
    """
    check_exposure(exposure, merit, mask)
    if form not in ("means", "cross_multiplied"):
        raise RankPolicyError(f"form must be 'means' or 'cross_multiplied'; got {form!r}.")
    given = group_members(groups, mask, num_groups=num_groups)
    E, M = given.means(exposure.detach()), given.means(merit.to(exposure.dtype))
    reasons = {ABSENT: (given.sizes == 0).any(-1)}
    if form == "means":
        reasons[ZERO_MERIT] = (M <= 0).any(-1)
    is_counted, left_out = count_reasons(reasons)

    # d = u E_a - w E_b over pairs a < b; 0 at queries that are left out.
    a, b = torch.triu_indices(E.shape[-1], E.shape[-1], offset=1, device=E.device)
    u, w = (1 / M[:, a], 1 / M[:, b]) if form == "means" else (M[:, b], M[:, a])
    u, w = u.where(is_counted[:, None], 0.0), w.where(is_counted[:, None], 0.0)
    d = u * E[:, a] - w * E[:, b]

    higher = (M[:, a] - M[:, b]).where(is_counted[:, None], 0.0)
    total = math.nan
    if amortized:
        weights = is_counted.to(d.dtype) if query_weights is None else is_counted * query_weights.to(d.dtype)
        total_weight = weights.sum().clamp(min=torch.finfo(d.dtype).tiny)
        mean_d, mean_higher = weights @ d / total_weight, weights @ higher
        slope = _slope(mean_d, mean_higher).expand_as(d)
        values = (d * mean_higher.sign().where(mean_higher != 0, 1.0)).mean(-1)
        total = float((slope[0] * mean_d).mean()) if is_counted.any() else math.nan
    else:
        slope = _slope(d, higher)
        values = (slope * d).mean(-1)
    by_group = torch.zeros_like(E).index_add(1, a, slope * u).index_add(1, b, -slope * w) / len(a)
    return Disparity(
        values=values,
        gradient=given.of_items(by_group / given.sizes.clamp(min=1)),
        is_counted=is_counted,
        left_out=left_out,
        amortized=total if amortized else None,
    )


def _slope(d: Tensor, higher: Tensor) -> Tensor:
    """Derivative of max(0, d), max(0, -d) or abs(d), as the first group has more, less or the same merit; 0 at d = 0."""
    return torch.where(higher == 0, d.sign(), higher.sign() * (higher.sign() * d > 0))
