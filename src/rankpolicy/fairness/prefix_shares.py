"""Shares of groups at the top of single rankings, compared with the shares they should have: skew, nDKL, rND and rKL."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rankpolicy.fairness.groups import group_members, target_shares
from rankpolicy.metrics.ranked import discounts, ranked
from rankpolicy.types import RankPolicyError


def skew(
    rankings: Tensor,
    groups: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    target: Tensor | None = None,
    prior_items: float = 0.0,
) -> Tensor:
    """Skew@c of every group (Geyik et al. 2019): log(share in the first c positions / share it should have) (..., query, group).

    0 is proportional; a group without items in the first c positions has -inf, a group that should have none has NaN.

    Parameters
    ----------
    rankings
        Whole rankings or their first positions (..., query, position).
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    mask
        True at real items (query, item).
    cutoff
        How many positions count; by default all.
    target
        Shares that the groups should have, (group,) or (query, group), summing to 1; by default those among the query's items.
    prior_items
        So many items in the right shares are added to the counts, which keeps skews finite.

    >>> rankings, groups = torch.tensor([[2, 0, 1, 3]]), torch.tensor([[0, 0, 1, 1]])
    >>> skew(rankings, groups, torch.ones(1, 4, dtype=torch.bool), cutoff=3).exp()  # (2/3, 1/3) / (1/2, 1/2)
    tensor([[1.3333, 0.6667]])
    """
    counts, shares, length = _counts(rankings, groups, mask, cutoff, target)
    depth = length[:, None].to(shares.dtype)  # real positions of each query
    share = (counts[..., -1, :] + prior_items * shares) / (depth + prior_items)
    return (share / shares.where(shares > 0, torch.nan)).log()


def min_skew(
    rankings: Tensor, groups: Tensor, mask: Tensor, *, cutoff: int | None = None, prior_items: float = 0.0
) -> Tensor:
    """Skew@c of the group that is worst off (..., query): 0 is proportional, below 0 some group has less than its share.

    Parameters
    ----------
    rankings
        Whole rankings or their first positions (..., query, position).
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    mask
        True at real items (query, item).
    cutoff
        How many positions count; by default all.
    prior_items
        So many items in the right shares are added to the counts, which keeps skews finite.

    >>> min_skew(torch.tensor([[0, 1, 2, 3]]), torch.tensor([[0, 0, 1, 1]]), torch.ones(1, 4, dtype=torch.bool), cutoff=3).exp()
    tensor([0.6667])
    """
    skews = skew(rankings, groups, mask, cutoff=cutoff, prior_items=prior_items)
    return skews.where(~skews.isnan(), torch.inf).amin(-1)


def max_skew(
    rankings: Tensor, groups: Tensor, mask: Tensor, *, cutoff: int | None = None, prior_items: float = 0.0
) -> Tensor:
    """Skew@c of the group that is best off (..., query): 0 is proportional, above 0 some group has more than its share.

    Parameters
    ----------
    rankings
        Whole rankings or their first positions (..., query, position).
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    mask
        True at real items (query, item).
    cutoff
        How many positions count; by default all.
    prior_items
        So many items in the right shares are added to the counts, which keeps skews finite.

    >>> max_skew(torch.tensor([[0, 1, 2, 3]]), torch.tensor([[0, 0, 1, 1]]), torch.ones(1, 4, dtype=torch.bool), cutoff=3).exp()
    tensor([1.3333])
    """
    skews = skew(rankings, groups, mask, cutoff=cutoff, prior_items=prior_items)
    return skews.where(~skews.isnan(), -torch.inf).amax(-1)


def ndkl(
    rankings: Tensor, groups: Tensor, mask: Tensor, *, cutoff: int | None = None, target: Tensor | None = None
) -> Tensor:
    """Normalised discounted KL divergence (Geyik et al. 2019) (..., query): 0 is proportional at every prefix.

    nDKL = (1 / Z) sum_p KL(shares in the first p positions, target) / log2(1 + p), Z = sum_p 1 / log2(1 + p), KL with the natural
    logarithm, p up to the cutoff.

    Parameters
    ----------
    rankings
        Whole rankings or their first positions (..., query, position).
    groups
        Group codes 0, 1, ... of items (query, item); see ``encode_groups``.
    mask
        True at real items (query, item).
    cutoff
        How many positions count; by default all.
    target
        Shares that the groups should have, (group,) or (query, group), summing to 1; by default those among the query's items.

    >>> ndkl(torch.tensor([[0, 1]]), torch.tensor([[0, 1]]), torch.ones(1, 2, dtype=torch.bool))  # log(2) / (1 + 1/log2(3))
    tensor([0.4250])
    """
    counts, shares, length = _counts(rankings, groups, mask, cutoff, target)
    positions = torch.arange(1, counts.shape[-2] + 1, dtype=shares.dtype, device=counts.device)
    prefix = counts / positions[:, None]
    divergence = (torch.xlogy(prefix, prefix) - torch.xlogy(prefix, shares[:, None, :])).sum(-1)
    weights = discounts(counts.shape[-2], like=shares) * (positions <= length[:, None])
    return torch.where(weights > 0, divergence * weights, 0.0).sum(-1) / weights.sum(-1).clamp(min=1)


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


def _counts(
    rankings: Tensor, groups: Tensor, mask: Tensor, cutoff: int | None, target: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Members of each group in every prefix (..., query, position, group), target shares (query, group), real positions (query,)."""
    members = group_members(groups, mask, num_groups=None if target is None else target.shape[-1])
    cut = ranked(rankings, groups, mask, cutoff=cutoff).rankings
    num_groups = members.sizes.shape[-1]
    dtype = torch.get_default_dtype()
    # (query, item, group); padded items belong to no group.
    one_hot = torch.nn.functional.one_hot(members.codes, num_groups + 1)[..., :num_groups].to(dtype)
    index = cut[..., None].expand(*cut.shape, num_groups)
    placed = one_hot.expand(*cut.shape[:-1], *one_hot.shape[-2:]).gather(-2, index)
    shares = target_shares(members, target, dtype=dtype).expand(len(mask), num_groups)
    return placed.cumsum(-2), shares, mask.sum(-1).clamp(max=cut.shape[-1])


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
    lists = ranked(rankings, is_member.double(), mask, cutoff=cutoff)
    n, m = mask.sum(-1, keepdim=True).double(), is_member.sum(-1, keepdim=True).double()
    ends = step * torch.arange(1, lists.rankings.shape[-1] // step + 1, device=mask.device)
    weights = (ends <= n) / torch.log2(ends.double())

    def total(num_members: Tensor) -> Tensor:
        """The sum, from the members (..., query, prefix) of every prefix."""
        return torch.where(weights > 0, term(num_members / ends, m / n) * weights, 0.0).sum(-1)

    all_first, all_last = torch.minimum(ends, m), (ends - (n - m)).clamp(min=0)
    worst = torch.maximum(total(all_first), total(all_last))
    worst = worst.masked_fill(worst < 1e-12, math.nan)  # a list of one group: 0 up to rounding
    return (total(lists.placed(lists.items.labels).cumsum(-1)[..., ends - 1]) / worst).to(torch.get_default_dtype())
