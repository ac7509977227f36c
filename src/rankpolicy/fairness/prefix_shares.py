"""Shares of groups at the top of single rankings, compared with the shares they should have: skew, nDKL, rND and rKL."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rankpolicy.arrays import (
    Array,
    alike,
    as_double,
    as_like,
    clip,
    gather,
    masked_fill,
    namespace,
    x_log_y,
)
from rankpolicy.fairness.groups import group_members, target_shares
from rankpolicy.metrics.ranked import discounts, rank_numbers, ranked
from rankpolicy.types import RankPolicyError


def skew(
    rankings: Array,
    groups: Array,
    mask: Array,
    *,
    cutoff: int | None = None,
    target: Array | None = None,
    prior_items: float = 0.0,
) -> Array:
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

    >>> rankings, groups = np.array([[2, 0, 1, 3]]), np.array([[0, 0, 1, 1]])
    >>> np.exp(skew(rankings, groups, np.ones((1, 4), bool), cutoff=3)).round(4)  # (2/3, 1/3) / (1/2, 1/2)
    array([[1.3333, 0.6667]])
    """
    counts, shares, length = _counts(rankings, groups, mask, cutoff, target)
    depth = as_like(length[:, None], shares)  # real positions of each query
    share = (counts[..., -1, :] + prior_items * shares) / (depth + prior_items)
    with np.errstate(divide="ignore"):  # of groups without items
        return namespace(share).log(share / masked_fill(shares, shares <= 0, math.nan))


def min_skew(
    rankings: Array, groups: Array, mask: Array, *, cutoff: int | None = None, prior_items: float = 0.0
) -> Array:
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

    >>> rankings, groups = np.array([[0, 1, 2, 3]]), np.array([[0, 0, 1, 1]])
    >>> np.exp(min_skew(rankings, groups, np.ones((1, 4), bool), cutoff=3)).round(4)
    array([0.6667])
    """
    skews = skew(rankings, groups, mask, cutoff=cutoff, prior_items=prior_items)
    return namespace(skews).min(masked_fill(skews, skews != skews, math.inf), axis=-1)


def max_skew(
    rankings: Array, groups: Array, mask: Array, *, cutoff: int | None = None, prior_items: float = 0.0
) -> Array:
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

    >>> rankings, groups = np.array([[0, 1, 2, 3]]), np.array([[0, 0, 1, 1]])
    >>> np.exp(max_skew(rankings, groups, np.ones((1, 4), bool), cutoff=3)).round(4)
    array([1.3333])
    """
    skews = skew(rankings, groups, mask, cutoff=cutoff, prior_items=prior_items)
    return namespace(skews).max(masked_fill(skews, skews != skews, -math.inf), axis=-1)


def ndkl(
    rankings: Array, groups: Array, mask: Array, *, cutoff: int | None = None, target: Array | None = None
) -> Array:
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

    >>> ndkl(np.array([[0, 1]]), np.array([[0, 1]]), np.ones((1, 2), bool)).round(4)  # log(2) / (1 + 1/log2(3))
    array([0.425])
    """
    counts, shares, length = _counts(rankings, groups, mask, cutoff, target)
    positions = rank_numbers(counts.shape[-2], like=shares)
    prefix = counts / positions[:, None]
    divergence = (x_log_y(prefix, prefix) - x_log_y(prefix, shares[:, None, :])).sum(-1)
    weights = discounts(counts.shape[-2], like=shares) * (positions <= length[:, None])
    with np.errstate(invalid="ignore"):  # an infinite divergence of positions that do not count
        total = namespace(weights).where(weights > 0, divergence * weights, 0.0).sum(-1)
    return total / clip(weights.sum(-1), 1)


def rnd(
    rankings: Array, groups: Array, mask: Array, *, protected: int = 1, step: int = 10, cutoff: int | None = None
) -> Array:
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

    >>> rankings = np.array([[[0, 1, 2, 3]], [[0, 2, 1, 3]]])
    >>> rnd(rankings, np.array([[1, 1, 0, 0]]), np.ones((1, 4), bool), step=2)
    array([[1.],
           [0.]])
    """
    return _normalised(_difference, rankings, groups, mask, protected, step, cutoff)


def rkl(
    rankings: Array, groups: Array, mask: Array, *, protected: int = 1, step: int = 10, cutoff: int | None = None
) -> Array:
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

    >>> rankings = np.array([[[0, 1, 2, 3]], [[0, 2, 1, 3]]])
    >>> rkl(rankings, np.array([[1, 1, 0, 0]]), np.ones((1, 4), bool), step=2)
    array([[1.],
           [0.]])
    """
    return _normalised(_divergence, rankings, groups, mask, protected, step, cutoff)


def _counts(
    rankings: Array, groups: Array, mask: Array, cutoff: int | None, target: Array | None
) -> tuple[Array, Array, Array]:
    """Members of each group in every prefix (..., query, position, group), target shares (query, group), real positions (query,)."""
    rankings, groups, mask = alike(rankings, groups, mask)
    members = group_members(groups, mask, num_groups=None if target is None else np.shape(target)[-1])
    lists = ranked(rankings, members.codes, mask, cutoff=cutoff)
    cut, mask, xp = lists.rankings, lists.items.mask, namespace(members.codes)
    num_groups = members.sizes.shape[-1]
    floats = xp.zeros(0, device=cut.device)
    # Padded items belong to no group.
    placed = [gather(as_like(members.codes == group, floats), cut).cumsum(-1) for group in range(num_groups)]
    shares = xp.broadcast_to(target_shares(members, target, like=floats), (len(mask), num_groups))
    return xp.stack(placed, axis=-1), shares, clip(mask.sum(-1), high=cut.shape[-1])


def _difference(share: Array, overall: Array) -> Array:
    return abs(share - overall)


def _divergence(share: Array, overall: Array) -> Array:
    pairs = ((share, overall), (1 - share, 1 - overall))
    return sum(x_log_y(p, p) - x_log_y(p, q) for p, q in pairs) / math.log(2)


@np.errstate(invalid="ignore", divide="ignore")  # prefixes that do not count
def _normalised(
    term: Callable[[Array, Array], Array],
    rankings: Array,
    groups: Array,
    mask: Array,
    protected: int,
    step: int,
    cutoff: int | None,
) -> Array:
    if step < 2:
        raise RankPolicyError(f"step must be 2 or more, as the first prefix is divided by log2(step); got {step}.")
    rankings, groups, mask = alike(rankings, groups, mask)
    is_member = as_double(group_members(groups, mask).codes == protected)
    lists = ranked(rankings, is_member, mask, cutoff=cutoff)
    mask, xp = lists.items.mask, namespace(is_member)
    n, m = as_double(mask.sum(-1, keepdims=True)), is_member.sum(-1, keepdims=True)
    ends = step * xp.arange(1, lists.rankings.shape[-1] // step + 1, device=mask.device)
    weights = (ends <= n) / xp.log2(as_double(ends))

    def total(num_members: Array) -> Array:
        """The sum, from the members (..., query, prefix) of every prefix."""
        return xp.where(weights > 0, term(num_members / ends, m / n) * weights, 0.0).sum(-1)

    all_first, all_last = xp.minimum(as_double(ends), m), clip(ends - (n - m), 0)
    worst = xp.maximum(total(all_first), total(all_last))
    worst = masked_fill(worst, worst < 1e-12, math.nan)  # a list of one group: 0 up to rounding
    members_in = lists.placed(lists.items.labels).cumsum(-1)[..., ends - 1]
    return as_like(total(members_in) / worst, xp.zeros(0, device=mask.device))
