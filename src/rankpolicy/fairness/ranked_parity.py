"""Parity at prefixes of growing length, as a share of the worst possible: rND and rKL."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rankpolicy.fairness.groups import group_members
from rankpolicy.metrics.ranked import ranked
from rankpolicy.types import RankPolicyError


def rnd(
    rankings: Tensor, groups: Tensor, mask: Tensor, *, protected: int = 1, step: int = 10, cutoff: int | None = None
) -> Tensor:
    """Normalised discounted difference (Yang & Stoyanovich 2017) (..., query): 0 is parity, 1 the worst ranking there is.

    rND = (1 / Z) sum over i = step, 2 step, ... of abs(m_i / i - m / n) / log2(i), with m_i the members of the ``protected`` group in the
    first i positions, m those among all n items, and Z the highest value of the sum: that of all members first or all last. NaN where
    Z = 0: a list with no prefix of ``step`` items other than itself, or of one group only.

    Parameters
    ----------
    rankings
        Whole rankings or their first positions (..., query, position).
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    mask
        True at real items (query, item).
    protected
        Code of the protected group.
    step
        Prefixes of step, 2 step, ... items are compared; 2 or more.
    cutoff
        How many positions count; by default all.

    >>> rankings = torch.tensor([[[0, 1, 2, 3]], [[0, 2, 1, 3]]])
    >>> rnd(rankings, torch.tensor([[1, 1, 0, 0]]), torch.ones(1, 4, dtype=torch.bool), step=2)
    tensor([[1.],
            [0.]])
    """
    return _normalised(_difference, rankings, groups, mask, protected, step, cutoff)


def rkl(
    rankings: Tensor, groups: Tensor, mask: Tensor, *, protected: int = 1, step: int = 10, cutoff: int | None = None
) -> Tensor:
    """Normalised discounted KL divergence (Yang & Stoyanovich 2017): as rND, with KL((m_i / i, 1 - m_i / i), (m / n, 1 - m / n)) in bits.

    Parameters
    ----------
    rankings
        Whole rankings or their first positions (..., query, position).
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    mask
        True at real items (query, item).
    protected
        Code of the protected group.
    step
        Prefixes of step, 2 step, ... items are compared; 2 or more.
    cutoff
        How many positions count; by default all.

    >>> rankings = torch.tensor([[[0, 1, 2, 3]], [[0, 2, 1, 3]]])
    >>> rkl(rankings, torch.tensor([[1, 1, 0, 0]]), torch.ones(1, 4, dtype=torch.bool), step=2)
    tensor([[1.],
            [0.]])
    """
    return _normalised(_divergence, rankings, groups, mask, protected, step, cutoff)


def _difference(share: Tensor, overall: Tensor) -> Tensor:
    return (share - overall).abs()


def _divergence(share: Tensor, overall: Tensor) -> Tensor:
    pairs = ((share, overall), (1 - share, 1 - overall))
    return sum((torch.xlogy(p, p) - torch.xlogy(p, q) for p, q in pairs), torch.zeros(())) / math.log(2)


def _normalised(
    term: Callable[[Tensor, Tensor], Tensor],
    rankings: Tensor,
    groups: Tensor,
    mask: Tensor,
    protected: int,
    step: int,
    cutoff: int | None,
) -> Tensor:
    if step < 2:
        raise RankPolicyError(f"step must be 2 or more, as the first prefix is divided by log2(step); got {step}.")
    is_member = group_members(groups, mask).codes == protected
    given = ranked(rankings, is_member.double(), mask, cutoff=cutoff)
    n, m = mask.sum(-1, keepdim=True).double(), is_member.sum(-1, keepdim=True).double()
    ends = step * torch.arange(1, given.rankings.shape[-1] // step + 1, device=mask.device)
    weights = (ends <= n) / torch.log2(ends.double())

    def total(num_members: Tensor) -> Tensor:
        """The sum, from the members (..., query, prefix) of every prefix."""
        return torch.where(weights > 0, term(num_members / ends, m / n) * weights, 0.0).sum(-1)

    all_first, all_last = torch.minimum(ends, m), (ends - (n - m)).clamp(min=0)
    worst = torch.maximum(total(all_first), total(all_last))
    worst = worst.masked_fill(worst < 1e-12, math.nan)  # a list of one group: 0 up to rounding
    return (total(given.placed(given.items.labels).cumsum(-1)[..., ends - 1]) / worst).to(torch.get_default_dtype())
