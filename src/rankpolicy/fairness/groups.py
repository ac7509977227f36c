"""Groups of items: codes 0, 1, ... for any names, sums over the members of each group, and the shares that groups should have."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rankpolicy.kernels import can_read
from rankpolicy.types import RankPolicyError


class GroupCodes(NamedTuple):
    """Groups as codes: ``names[codes[..., item]]`` is the group of an item.

    Parameters
    ----------
    codes
        Integers in the shape of what was encoded.
    names
        The group of each code.
    """

    codes: Tensor  # the shape of what was encoded, int64
    names: tuple[Any, ...]


def encode_groups(groups: ArrayLike | Tensor, mask: Tensor | None = None) -> GroupCodes:
    """Number the groups that occur 0, 1, ... in sorted order.

    Parameters
    ----------
    groups
        The group of each item, as text, numbers or objects, in any shape.
    mask
        True at real items; others get code 0, and their groups are not counted. By default all items are real.

    >>> encode_groups([["m", "f", "m"]])
    GroupCodes(codes=tensor([[1, 0, 1]]), names=('f', 'm'))
    """
    array = np.asarray(groups)
    real = np.ones(array.shape, bool) if mask is None else mask.cpu().numpy()
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
    return GroupCodes(torch.from_numpy(codes), tuple(names.tolist()))


def _is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "O":
        return np.array([value is None or value != value for value in values.tolist()], dtype=bool)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)


class GroupMembers(NamedTuple):
    """Checked group codes; padded items belong to one extra group that is never reported."""

    codes: Tensor  # (query, item) int64
    sizes: Tensor  # (query, group) number of members

    def sums(self, values: Tensor) -> Tensor:
        """Values (query, item) summed over the members of each group (query, group)."""
        num_groups = self.sizes.shape[-1]
        sums = torch.zeros(len(values), num_groups + 1, dtype=values.dtype, device=values.device)
        return sums.scatter_add(-1, self.codes, values)[:, :num_groups]

    def means(self, values: Tensor) -> Tensor:
        """Values (query, item) averaged over the members of each group (query, group); 0 for a group without members."""
        return self.sums(values) / self.sizes.clamp(min=1).to(values.dtype)

    def of_items(self, values: Tensor) -> Tensor:
        """Values (query, group) of each item's group (query, item); 0 at padded items."""
        return torch.nn.functional.pad(values, (0, 1)).gather(-1, self.codes)


def group_members(groups: Tensor, mask: Tensor, *, num_groups: int | None = None) -> GroupMembers:
    """Check group codes (query, item) and count the members of at least two groups: where only one occurs, the other is absent."""
    if groups.shape != mask.shape or groups.ndim != 2:
        raise RankPolicyError(
            f"groups must have the shape of mask, (query, item) = {tuple(mask.shape)}; got {tuple(groups.shape)}. "
            "For one query add an axis: groups[None]."
        )
    if groups.is_floating_point() or groups.is_complex():
        raise RankPolicyError(f"groups must be integer codes; got {groups.dtype}. Use encode_groups(groups).codes.")
    if num_groups is None or can_read(groups):
        real = groups[mask].long()
        lowest, highest = (int(real.min()), int(real.max())) if real.numel() else (0, 0)
        count = max(2, highest + 1) if num_groups is None else num_groups
        if lowest < 0 or highest >= count:
            raise RankPolicyError(
                f"group codes must run from 0 to {count - 1}; got {lowest} to {highest}. "
                "Use encode_groups(groups).codes, or pass the right num_groups."
            )
    else:
        count = num_groups
    codes = groups.long().masked_fill(~mask, count)
    sizes = torch.zeros(len(codes), count + 1, dtype=torch.long, device=codes.device)
    return GroupMembers(codes, sizes.scatter_add(-1, codes, torch.ones_like(codes))[:, :count])


def target_shares(members: GroupMembers, target: Tensor | None, *, dtype: torch.dtype) -> Tensor:
    """Shares that the groups should have, (group,) or (query, group): the target, checked, or by default those among the query's items."""
    if target is None:
        sizes = members.sizes.to(dtype)
        return sizes / sizes.sum(-1, keepdim=True).clamp(min=1)
    if target.ndim > 2 or (target < 0).any() or ((target.sum(-1) - 1).abs() > 1e-4).any():
        raise RankPolicyError(
            "target must hold shares of the groups, (group,) or (query, group), 0 or more and summing to 1; "
            f"got shape {tuple(target.shape)} with sums from {target.sum(-1).min():g} to {target.sum(-1).max():g}."
        )
    return target.to(dtype)
