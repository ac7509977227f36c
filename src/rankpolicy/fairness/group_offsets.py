"""Equal exposure of groups in every query: one offset per group, added to the scores of its items.

The exposures of a Plackett-Luce policy are the gradient of a convex function of its scores (their Jacobian is a graph Laplacian), so
offsets b_g that give each group the total exposure t_g exist, are unique up to a constant and are found by Newton's method.

A policy whose groups have equal mean exposure has no group disparity, **whatever the merits are**: E_a / M_a <= E_b / M_b for M_a >= M_b.
So it is fair on queries without labels too, where merits are unknown.
"""

from __future__ import annotations

import warnings

from rankpolicy.arrays import (
    Array,
    alike,
    arange,
    as_like,
    clip,
    namespace,
    zeros,
)
from rankpolicy.display import frozen_value
from rankpolicy.fairness.exposure import position_bias
from rankpolicy.fairness.groups import GroupMembers, group_members
from rankpolicy.gradients.exact import exposure_gradient
from rankpolicy.types import RankPolicyError

_MOST_STEPS = 100
_TOLERANCE = 1e-9  # of a group's mean exposure
# In scores, at first: where the order is nearly certain the Jacobian vanishes, and a full Newton step would be far too long.
_LONGEST_STEP = 4.0
_DAMPING = 1e-10


@frozen_value(kw_only=True)
class ParityOffsets:
    """What to add to the scores, and how the offsets respond to a change of the scores.

    Parameters
    ----------
    values
        The offset of each item's group (query, item).
    members
        The groups of the items.
    jacobian
        Change of each group's total exposure with each group's offset (query, group, group).
    """

    values: Array  # (query, item)
    members: GroupMembers
    jacobian: Array  # (query, group, group)

    def multipliers(self, slope: Array) -> Array:
        """μ (query, group) with jacobian μ = the sums of dU/dscores over groups.

        The offsets keep the totals where they are, so dU/dscores through them is dU/dscores - Σ_g μ_g d(total of g)/dscores.

        Parameters
        ----------
        slope
            dU/dscores (query, item) at the scores with offsets.
        """
        return _solve(self.jacobian, self.members.sums(slope), self.members.sizes)


def parity_offsets(
    scores: Array, mask: Array, groups: Array, *, num_groups: int | None = None, rank_weights: Array | None = None
) -> ParityOffsets:
    """Offsets (query, item), one value per group, such that all groups of a query have the same mean exposure.

    The offsets of a query sum to 0 over its items.

    Parameters
    ----------
    scores
        Float64 scores (query, item).
    mask
        True at real items (query, item).
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    num_groups
        How many groups there are, where a batch may lack some; by default the highest code plus one, at least 2.
    rank_weights
        Position bias (position,), never increasing; None: 1 / log2(1 + rank).

    >>> import numpy as np
    >>> scores, mask = np.array([[2.0, 0.0, 0.0, 0.0]]), np.ones((1, 4), bool)
    >>> offsets = parity_offsets(scores, mask, np.array([[0, 0, 1, 1]])).values
    >>> exposure, _ = exposure_gradient(scores + offsets, mask, np.zeros((1, 4)), rank_weights=position_bias(4))
    >>> float(exposure[0, :2].mean().round(4)), float(exposure[0, 2:].mean().round(4))
    (0.6404, 0.6404)
    """
    scores, mask, groups = alike(scores, mask, groups)
    xp = namespace(scores)
    if scores.dtype != xp.float64:
        raise RankPolicyError(f"parity offsets are solved for in float64; got {scores.dtype}. Cast the scores to it.")
    members = group_members(groups, mask, num_groups=num_groups)
    kind = "log2" if rank_weights is None else rank_weights
    bias = as_like(position_bias(scores.shape[-1], kind=kind), scores)
    sizes = as_like(members.sizes, scores)
    offsets, jacobian = xp.zeros_like(sizes), zeros((*sizes.shape, sizes.shape[-1]), like=sizes)
    longest = xp.zeros_like(sizes[:, :1]) + _LONGEST_STEP
    last_step = xp.zeros_like(sizes)
    open_queries = arange(len(scores), like=scores)
    for _ in range(_MOST_STEPS):
        open_members = GroupMembers(members.codes[open_queries], members.sizes[open_queries])
        shifted = scores[open_queries] + open_members.of_items(offsets[open_queries])
        residual, jacobian[open_queries] = _residual_and_jacobian(shifted, mask[open_queries], open_members, bias)
        is_open = (abs(residual) > _TOLERANCE * open_members.sizes).any(-1)
        open_queries, residual = open_queries[is_open], residual[is_open]
        if not len(open_queries):
            break
        # Totals increase with their offsets: a residual against the last step means that the step was too long.
        overshot = ((residual * last_step[open_queries]).sum(-1, keepdims=True)) < 0
        longest[open_queries] *= xp.where(overshot, 0.5, 1.5)
        step = _solve(jacobian[open_queries], residual, members.sizes[open_queries])
        step *= clip(longest[open_queries] / xp.max(abs(step), axis=-1, keepdims=True), high=1.0)
        offsets[open_queries] += step
        last_step[open_queries] = step
    else:
        warnings.warn(
            f"offsets of {len(open_queries)} queries do not give their groups equal exposure: the scores lie too far apart. "
            "Scale them down, or regularise training (entropy, weight_decay).",
            stacklevel=2,
        )
    offsets -= (offsets * sizes).sum(-1, keepdims=True) / clip(sizes.sum(-1, keepdims=True), 1)
    return ParityOffsets(values=members.of_items(offsets), members=members, jacobian=jacobian)


def _residual_and_jacobian(scores: Array, mask: Array, members: GroupMembers, bias: Array) -> tuple[Array, Array]:
    """What each group lacks of its share of exposure (query, group), and the derivative of exposure by offsets (query, group, group)."""
    columns = []
    for group in range(members.sizes.shape[-1]):
        is_member = as_like(members.codes == group, scores)
        exposure, slope = exposure_gradient(scores, mask, is_member, rank_weights=bias)
        columns.append(members.sums(slope))
    totals = members.sums(exposure)
    fair_share = totals.sum(-1, keepdims=True) / clip(members.sizes.sum(-1, keepdims=True), 1)
    return members.sizes * fair_share - totals, namespace(totals).stack(columns, axis=-1)


def _solve(jacobian: Array, sums: Array, sizes: Array) -> Array:
    """The solution x (query, group) of jacobian x = sums with the smallest x.

    A Laplacian determines x up to one constant over the groups that are present, so sums must be 0 on average over these: what rounding
    adds is removed. It vanishes where the order is certain, hence the damping.
    """
    xp, is_present = namespace(sums), as_like(sizes > 0, sums)
    excess = (sums * is_present).sum(-1, keepdims=True) / clip(is_present.sum(-1, keepdims=True), 1)
    damped = jacobian + _DAMPING * xp.eye(jacobian.shape[-1], dtype=jacobian.dtype, device=jacobian.device)
    return xp.linalg.solve(damped, (is_present * (sums - excess))[..., None])[..., 0]
