"""Groups of items: codes 0, 1, ... for any names, sums over the members of each group, and the shares that groups should have."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arrays import (
    Array,
    alike,
    as_like,
    clip,
    gather,
    is_tensor,
    masked_fill,
    namespace,
    scatter_add,
    to_numpy,
    zeros,
)
from rankpolicy.kernels import can_read
from rankpolicy.types import RankPolicyError


class GroupCodes(NamedTuple):
    """Groups as codes: ``names[codes[..., item]]`` is the group of an item.

    Parameters
    ----------
    codes
        Integers in the shape of what was encoded: a tensor where groups or mask were one.
    names
        The group of each code.
    """

    codes: Array  # the shape of what was encoded, int64
    names: tuple[Any, ...]


def encode_groups(groups: Any, mask: Array | None = None) -> GroupCodes:
    """Number the groups that occur 0, 1, ... in sorted order.

    Parameters
    ----------
    groups
        The group of each item, as text, numbers or objects, in any shape.
    mask
        True at real items; others get code 0, and their groups are not counted. By default all items are real.

    >>> encode_groups([["m", "f", "m"]])
    GroupCodes(codes=array([[1, 0, 1]]), names=('f', 'm'))
    """
    array = to_numpy(groups)
    real = np.ones(array.shape, bool) if mask is None else to_numpy(mask)
    if real.shape != array.shape:
        raise RankPolicyError(f"groups must have the shape of mask, {real.shape}; got {array.shape}.")
    values = array[real]
    if _is_missing(values).any():
        raise RankPolicyError(
            "every item must have a group; got a missing one (None or NaN). Give those a group of their own."
        )
    names, numbers = np.unique(values.astype(str) if values.dtype.kind == "O" else values, return_inverse=True)
    codes = np.zeros(array.shape, np.int64)
    codes[real] = numbers
    if is_tensor(groups) or is_tensor(mask):
        import torch

        return GroupCodes(torch.from_numpy(codes), tuple(names.tolist()))
    return GroupCodes(codes, tuple(names.tolist()))


def _is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "O":
        return np.array([value is None or value != value for value in values.tolist()], dtype=bool)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)


class GroupMembers(NamedTuple):
    """Checked group codes; padded items belong to one extra group that is never reported."""

    codes: Array  # (query, item) int64
    sizes: Array  # (query, group) number of members

    def sums(self, values: Array) -> Array:
        """Values (query, item) summed over the members of each group (query, group)."""
        num_groups = self.sizes.shape[-1]
        return scatter_add(zeros((len(values), num_groups + 1), like=values), self.codes, values)[:, :num_groups]

    def means(self, values: Array) -> Array:
        """Values (query, item) averaged over the members of each group (query, group); 0 for a group without members."""
        return self.sums(values) / as_like(clip(self.sizes, 1), values)

    def of_items(self, values: Array) -> Array:
        """Values (query, group) of each item's group (query, item); 0 at padded items."""
        xp = namespace(values)
        return gather(xp.concat([values, xp.zeros_like(values[:, :1])], axis=-1), self.codes)


def group_members(groups: Array, mask: Array, *, num_groups: int | None = None) -> GroupMembers:
    """Check group codes (query, item) and count the members of at least two groups: where only one occurs, the other is absent."""
    groups, mask = alike(groups, mask)
    xp = namespace(groups)
    if groups.shape != mask.shape or groups.ndim != 2:
        raise RankPolicyError(
            f"groups must have the shape of mask, (query, item) = {tuple(mask.shape)}; got {tuple(groups.shape)}. "
            "For one query add an axis: groups[None]."
        )
    if xp.isdtype(groups.dtype, ("real floating", "complex floating")):
        raise RankPolicyError(f"groups must be integer codes; got {groups.dtype}. Use encode_groups(groups).codes.")
    if num_groups is None or can_read(groups):
        real = groups[mask]
        lowest, highest = (int(real.min()), int(real.max())) if len(real) else (0, 0)
        count = max(2, highest + 1) if num_groups is None else num_groups
        if lowest < 0 or highest >= count:
            raise RankPolicyError(
                f"group codes must run from 0 to {count - 1}; got {lowest} to {highest}. "
                "Use encode_groups(groups).codes, or pass the right num_groups."
            )
    else:
        count = num_groups
    codes = masked_fill(xp.astype(groups, xp.int64, copy=False), ~mask, count)
    sizes = scatter_add(zeros((len(codes), count + 1), like=codes), codes, xp.ones_like(codes))
    return GroupMembers(codes, sizes[:, :count])


def target_shares(members: GroupMembers, target: Array | None, *, like: Array) -> Array:
    """Shares that the groups should have, (group,) or (query, group): the target, checked, or by default those among the query's items."""
    if target is None:
        sizes = as_like(members.sizes, like)
        return sizes / clip(sizes.sum(-1, keepdims=True), 1)
    shares = as_like(target, like)
    totals = shares.sum(-1)
    if shares.ndim > 2 or (shares < 0).any() or (abs(totals - 1) > 1e-4).any():
        raise RankPolicyError(
            "target must hold shares of the groups, (group,) or (query, group), 0 or more and summing to 1; "
            f"got shape {tuple(shares.shape)} with sums from {totals.min():g} to {totals.max():g}."
        )
    return shares
