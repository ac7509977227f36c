"""What a disparity is, and that between groups: whether one gets more exposure per unit of merit than another of no higher merit.

Disparity between items: whether an item gets more exposure per unit of merit than another of no higher merit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from rankpolicy.arrays import (
    Array,
    alike,
    as_like,
    clip,
    detached,
    is_floating,
    masked_fill,
    namespace,
    on_host,
    pair_indices,
    scatter_add,
    sign,
    to_numpy,
)
from rankpolicy.display import frozen_value
from rankpolicy.fairness.groups import group_members
from rankpolicy.kernels import HAS_NUMBA, can_read
from rankpolicy.types import RankPolicyError

Form = Literal["means", "cross_multiplied"]

ABSENT, ZERO_MERIT = "a group is absent", "a group has zero merit"


@frozen_value(kw_only=True)
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

    values: Array  # (query,)
    gradient: Array  # (query, item)
    is_counted: Array  # (query,) bool
    left_out: Mapping[str, int]
    amortized: float | None = None

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
        of_policies = zip(*(array.reshape(num_policies, -1, *array.shape[1:]) for array in arrays), strict=True)
        # Labels and groups alone decide which queries count, and they are the same for all policies.
        left_out = {reason: count // num_policies for reason, count in self.left_out.items()}
        return [
            Disparity(values=values, gradient=gradient, is_counted=is_counted, left_out=left_out)
            for values, gradient, is_counted in of_policies
        ]

    def weight_counted(self, query_weights: Array | None) -> float:
        """Total weight of the queries that count.

        Parameters
        ----------
        query_weights
            (query,); None weighs every query 1.
        """
        return self.num_counted if query_weights is None else float(query_weights[self.is_counted].sum())

    def weighted_mean(self, query_weights: Array | None) -> float:
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


def count_reasons(reasons: Mapping[str, Array]) -> tuple[Array, dict[str, int]]:
    """Which queries count, and how many are left out for each reason (query,) bool, the first that holds.

    >>> count_reasons({"empty": np.array([True, False, False]), "short": np.array([True, True, False])})
    (array([False, False,  True]), {'empty': 1, 'short': 1})
    """
    left_out: dict[str, int] = {}
    first = next(iter(reasons.values()))
    is_read, is_counted = can_read(first), namespace(first).ones_like(first)
    for reason, holds in reasons.items():
        count = int((holds & is_counted).sum()) if is_read else 0
        if count:
            left_out[reason] = count
        is_counted = is_counted & ~holds
    return is_counted, left_out


def checked_exposure(exposure: Array, merit: Array, mask: Array) -> tuple[Array, Array, Array]:
    """The arrays as one kind, with checked shapes and dtypes and merits of the dtype of the exposure, in their range."""
    exposure, merit, mask = alike(exposure, merit, mask)
    if exposure.ndim != 2 or merit.shape != exposure.shape or mask.shape != exposure.shape:
        raise RankPolicyError(
            "exposure, merit and mask must have one shape, (query, item); "
            f"got {tuple(exposure.shape)}, {tuple(merit.shape)} and {tuple(mask.shape)}. "
            "For one query add an axis: exposure[None]."
        )
    if not is_floating(exposure) or mask.dtype != namespace(mask).bool:
        raise RankPolicyError(f"exposure must be floating point and mask bool; got {exposure.dtype} and {mask.dtype}.")
    if 0 in exposure.shape:
        raise RankPolicyError(f"exposure must hold a query with an item; got shape {tuple(exposure.shape)}.")
    merit = as_like(merit, exposure)
    if can_read(merit):
        real = masked_fill(merit, ~mask, 0.0)
        if not (real.min() >= 0 and real.max() < math.inf):  # NaN comes through both
            raise RankPolicyError(
                "merit must be finite and 0 or more at every item; got a negative or missing one. merit_of(labels) names the item."
            )
    return exposure, merit, mask


def group_disparity(
    exposure: Array,
    merit: Array,
    groups: Array,
    mask: Array,
    *,
    form: Form = "means",
    amortized: bool = False,
    num_groups: int | None = None,
    query_weights: Array | None = None,
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

    >>> exposure, merit = np.array([[1.0, 0.6, 0.3]]), np.array([[3.0, 1.0, 1.0]])
    >>> groups, mask = np.array([[0, 0, 1]]), np.ones((1, 3), bool)
    >>> disparity = group_disparity(exposure, merit, groups, mask)
    >>> disparity.values.round(4), disparity.gradient  # 0.8 / 2 - 0.3 / 1
    (array([0.1]), array([[ 0.25,  0.25, -1.  ]]))
    """
    exposure, merit, mask = checked_exposure(exposure, merit, mask)
    if form not in ("means", "cross_multiplied"):
        raise RankPolicyError(f"form must be 'means' or 'cross_multiplied'; got {form!r}.")
    members = group_members(groups, mask, num_groups=num_groups)
    xp = namespace(exposure)
    E, M = members.means(detached(exposure)), members.means(merit)
    reasons = {ABSENT: (members.sizes == 0).any(-1)}
    if form == "means":
        reasons[ZERO_MERIT] = (M <= 0).any(-1)
    is_counted, left_out = count_reasons(reasons)

    # d = u E_a - w E_b over pairs a < b; 0 at queries that are left out.
    a, b = pair_indices(E.shape[-1], like=E)
    with np.errstate(divide="ignore"):  # at queries that are left out
        u, w = (1 / M[:, a], 1 / M[:, b]) if form == "means" else (M[:, b], M[:, a])
    counted = is_counted[:, None]
    u, w = xp.where(counted, u, 0.0), xp.where(counted, w, 0.0)
    d = u * E[:, a] - w * E[:, b]

    higher = xp.where(counted, M[:, a] - M[:, b], 0.0)
    total = math.nan
    if amortized:
        weights = as_like(is_counted, d) if query_weights is None else is_counted * as_like(query_weights, d)
        total_weight = clip(weights.sum(), float(xp.finfo(d.dtype).smallest_normal))
        mean_d, mean_higher = weights @ d / total_weight, weights @ higher
        slope = xp.broadcast_to(_slope(mean_d, mean_higher), d.shape)
        values = (d * xp.where(mean_higher != 0, sign(mean_higher), 1.0)).mean(-1)
        total = float((slope[0] * mean_d).mean()) if is_counted.any() else math.nan
    else:
        slope = _slope(d, higher)
        values = (slope * d).mean(-1)
    by_group = scatter_add(scatter_add(xp.zeros_like(E), a, slope * u), b, -slope * w) / len(a)
    return Disparity(
        values=values,
        gradient=members.of_items(by_group / as_like(clip(members.sizes, 1), by_group)),
        is_counted=is_counted,
        left_out=left_out,
        amortized=total if amortized else None,
    )


def _slope(d: Array, higher: Array) -> Array:
    """Derivative of max(0, d), max(0, -d) or abs(d), as the first group has more, less or the same merit; 0 at d = 0."""
    return namespace(d).where(higher == 0, sign(d), sign(higher) * (sign(higher) * d > 0))


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
    from rankpolicy.kernels.plackett_luce.item_pairs import individual_disparities

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
