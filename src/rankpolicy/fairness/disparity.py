"""What a disparity is, and that between groups: whether one gets more exposure per unit of merit than another of no higher merit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from rankpolicy.display import short_repr
from rankpolicy.fairness.groups import group_members
from rankpolicy.kernels import can_read
from rankpolicy.types import RankPolicyError

Form = Literal["means", "cross_multiplied"]

ABSENT, ZERO_MERIT = "a group is absent", "a group has zero merit"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Disparity:
    """Disparity of each query; queries that are left out have value and gradient 0.

    ``mean`` is taken over the ``num_counted`` queries that count, and NaN when none does; its gradient in exposure is
    ``gradient / num_counted``.

    Parameters
    ----------
    values
        (query,); of an amortized disparity, the signed differences that it averages.
    gradient
        dvalue/dexposure (query, item), 0 where the maximum with 0 has a kink.
    is_counted
        Which queries count (query,).
    left_out
        How many queries do not count, by reason; each query has one reason.
    amortized
        The one number of an amortized disparity, None for others.
    """

    values: Tensor  # (query,)
    gradient: Tensor  # (query, item)
    is_counted: Tensor  # (query,) bool
    left_out: Mapping[str, int]
    amortized: float | None = None

    __repr__ = short_repr

    @property
    def num_counted(self) -> int:
        """How many queries count."""
        return int(self.is_counted.sum())

    @property
    def mean(self) -> float:
        """The disparity of a policy over all its queries."""
        if self.amortized is not None:
            return self.amortized
        return float(self.values.sum()) / self.num_counted if self.num_counted else math.nan

    def of_policies(self, num_policies: int) -> list[Disparity]:
        """The disparity of each policy, where several rank the same queries: those of one policy after those of another.

        Parameters
        ----------
        num_policies
            How many policies there are; 1 for an amortized disparity.
        """
        if num_policies == 1:
            return [self]
        assert self.amortized is None, "averages over the queries of all policies"
        arrays = (self.values, self.gradient, self.is_counted)
        of_policies = zip(*(array.chunk(num_policies) for array in arrays), strict=True)
        # Labels and groups alone decide which queries count, and they are the same for all policies.
        left_out = {reason: count // num_policies for reason, count in self.left_out.items()}
        return [
            Disparity(values=values, gradient=gradient, is_counted=is_counted, left_out=left_out)
            for values, gradient, is_counted in of_policies
        ]

    def weight_counted(self, query_weights: Tensor | None) -> float:
        """Total weight of the queries that count.

        Parameters
        ----------
        query_weights
            (query,); None weighs every query 1.
        """
        return self.num_counted if query_weights is None else float(query_weights[self.is_counted].sum())

    def weighted_mean(self, query_weights: Tensor | None) -> float:
        """The weighted mean over queries; an amortized disparity was averaged by the weights that it was computed with.

        Parameters
        ----------
        query_weights
            (query,); None gives ``mean``.
        """
        if query_weights is None or self.amortized is not None:
            return self.mean
        weight = self.weight_counted(query_weights)
        return float((self.values * query_weights).sum()) / weight if weight else math.nan


def count_reasons(reasons: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, int]]:
    """Which queries count, and how many are left out for each reason (query,) bool, the first that holds.

    >>> count_reasons({"empty": torch.tensor([True, False, False]), "short": torch.tensor([True, True, False])})
    (tensor([False, False,  True]), {'empty': 1, 'short': 1})
    """
    left_out: dict[str, int] = {}
    is_read = can_read(next(iter(reasons.values())))
    is_counted = torch.ones_like(next(iter(reasons.values())))
    for reason, holds in reasons.items():
        count = int((holds & is_counted).sum()) if is_read else 0
        if count:
            left_out[reason] = count
        is_counted = is_counted & ~holds
    return is_counted, left_out


def check_exposure(exposure: Tensor, merit: Tensor, mask: Tensor) -> None:
    """Check shapes, dtypes and the range of merits."""
    if exposure.ndim != 2 or merit.shape != exposure.shape or mask.shape != exposure.shape:
        raise RankPolicyError(
            "exposure, merit and mask must have one shape, (query, item); "
            f"got {tuple(exposure.shape)}, {tuple(merit.shape)} and {tuple(mask.shape)}. "
            "For one query add an axis: exposure[None]."
        )
    if not exposure.is_floating_point() or mask.dtype != torch.bool:
        raise RankPolicyError(f"exposure must be floating point and mask bool; got {exposure.dtype} and {mask.dtype}.")
    if exposure.numel() == 0:
        raise RankPolicyError(f"exposure must hold a query with an item; got shape {tuple(exposure.shape)}.")
    if not can_read(merit):
        return
    lowest, highest = torch.aminmax(merit.masked_fill(~mask, 0))  # NaN comes through both
    if not (lowest >= 0 and highest < math.inf):
        raise RankPolicyError(
            "merit must be finite and 0 or more at every item; got a negative or missing one. merit_of(labels) names the item."
        )


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
    members = group_members(groups, mask, num_groups=num_groups)
    E, M = members.means(exposure.detach()), members.means(merit.to(exposure.dtype))
    reasons = {ABSENT: (members.sizes == 0).any(-1)}
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
        gradient=members.of_items(by_group / members.sizes.clamp(min=1)),
        is_counted=is_counted,
        left_out=left_out,
        amortized=total if amortized else None,
    )


def _slope(d: Tensor, higher: Tensor) -> Tensor:
    """Derivative of max(0, d), max(0, -d) or abs(d), as the first group has more, less or the same merit; 0 at d = 0."""
    return torch.where(higher == 0, d.sign(), higher.sign() * (higher.sign() * d > 0))
