"""The value of scores when items are tied: the mean over all orders of the items that have equal scores (McSherry & Najork 2008)."""

from __future__ import annotations

import math

import numpy as np

from rankpolicy.arrays import (
    Array,
    alike,
    arange,
    as_like,
    clip,
    gather,
    masked_fill,
    namespace,
    zeros,
)
from rankpolicy.metrics.expression import Leaf, RewardExpression
from rankpolicy.metrics.members import METRICS
from rankpolicy.metrics.metric import CascadeForm
from rankpolicy.metrics.ranked import judged_items, rank_by_score
from rankpolicy.types import Reward

NUM_ORDERS = 64  # random orders of tied items, for rewards whose expectation has no closed form


def expected_value(measure: Reward, scores: Array, labels: Array, mask: Array) -> Array:
    """Value (query,) of ranking by scores (query, item), in expectation over the orders of tied items.

    Exact for metrics and their weighted sums. Products of metrics and functions of one's own are averaged over 64 random orders.

    >>> from rankpolicy.metrics import all_items, parse_metric
    >>> labels = np.array([[1.0, 0.0, 0.0]])
    >>> expected_value(parse_metric("rr"), np.zeros((1, 3)), labels, all_items(1, 3)).round(4)  # (1 + 1/2 + 1/3) / 3
    array([0.6111])
    """
    scores, labels, mask = alike(scores, labels, mask)
    rankings = rank_by_score(scores, mask)
    values = measure(rankings, labels, mask)
    tied = ~_starts_of_groups(scores, mask, rankings).all(-1)
    if not tied.any():
        return values
    tied_queries = scores[tied], labels[tied], mask[tied]
    values = values + 0.0
    of_tied = (
        _of_expression(measure, *tied_queries)
        if isinstance(measure, RewardExpression) and measure.has_exact_expectation
        else _over_random_orders(measure, *tied_queries)
    )
    values[tied] = as_like(of_tied, values)
    return values


def _of_expression(measure: RewardExpression, scores: Array, labels: Array, mask: Array) -> Array:
    rankings = rank_by_score(scores, mask)
    starts = _starts_of_groups(scores, mask, rankings)

    def expected(leaf: Leaf) -> Array:
        items = judged_items(labels, mask, cutoff=leaf.cutoff)
        form = METRICS[leaf.metric].cascade_form(
            items, cutoff=leaf.cutoff, conventions=measure.conventions, options=dict(leaf.options)
        )
        # Where all item values are 0, every ranking has the value of a query without relevant items.
        any_ranking = measure.leaf_values(leaf, rankings, labels, mask)
        has_value = (form.item_values != 0).any(-1)
        return namespace(starts).where(has_value, expected_cascade(form, rankings, starts), any_ranking)

    return measure.combine({leaf: expected(leaf) for leaf in measure.leaves})


def expected_cascade(form: CascadeForm, rankings: Array, starts: Array) -> Array:
    """Expectation (query,) of a metric in its cascade form, over all orders within groups of tied items.

    A group of m items at positions a, a + 1, ... adds Σ_j θ_{a+j} E[ρ c_{a+j}], and E[ρ c_{a+j}] = c_a B_j + Σ_{t < j} G_t with means over
    all choices of different items of the group: A_j of the product of j keeps κ, B_j of ρ times j keeps, H_j of α times j keeps, G_j of ρ
    times α times j keeps. The group below starts with c = c_a A_m + Σ_t H_t. Each mean over m items follows from those over m - 1.
    """
    xp, (num_queries, n) = namespace(rankings), rankings.shape
    value, keep, add = (gather(values, rankings) for values in (form.item_values, form.keep, form.add))
    j = as_like(arange(n + 1, like=value), value)
    A = B = H = G = zeros((num_queries, n + 1), like=value)
    start = zeros((num_queries,), like=rankings)
    c, total = xp.ones_like(value[:, 0]), form.constant
    for p in range(n):
        new = starts[:, p, None]
        A, B, H, G = (masked_fill(means, new, 0.0) for means in (A, B, H, G))
        A[:, 0] = 1
        start = masked_fill(start, new[:, 0], p)
        m = as_like(p + 1 - start, value)[:, None]
        rho, kappa, alpha = value[:, p, None], keep[:, p, None], add[:, p, None]

        def with_item(means: Array, marks: int, m: Array = m, kappa: Array = kappa) -> Array:
            """The share of choices without the item, or with it among the keeps; ``marks`` items are chosen besides the keeps."""
            with_one_keep = xp.concat([xp.zeros_like(means[:, :1]), means[:, :-1]], axis=-1)
            return ((m - marks - j) * means + j * kappa * with_one_keep) / m

        A, B, H, G = (
            with_item(A, 0),
            with_item(B, 1) + rho * A / m,
            with_item(H, 1) + alpha * A / m,
            with_item(G, 2) + (rho * H + alpha * B) / m,
        )
        ends = starts[:, p + 1] if p + 1 < n else xp.ones_like(new[:, 0])
        inside = j[:-1] < m
        at = clip(start[:, None] + arange(n, like=start), high=n - 1)
        expected = c[:, None] * B[:, :-1] + (G.cumsum(-1) - G)[:, :-1]
        group = (form.rank_weights[at] * expected * inside).sum(-1)
        total = total + group * ends
        below = c * gather(A, (p + 1 - start)[:, None])[:, 0] + (H[:, :-1] * inside).sum(-1)
        c = xp.where(ends, below, c)
    return total


def _over_random_orders(measure: Reward, scores: Array, labels: Array, mask: Array) -> Array:
    generator, xp = np.random.default_rng(0), namespace(scores)  # the same orders for arrays and for tensors
    total = xp.zeros_like(scores[:, 0])
    for _ in range(NUM_ORDERS):
        keys = masked_fill(as_like(generator.random(scores.shape), scores), ~mask, math.inf)
        shuffled = xp.argsort(keys, axis=-1)
        order = rank_by_score(gather(scores, shuffled), gather(mask, shuffled))
        total += measure(gather(shuffled, order), labels, mask)
    return total / NUM_ORDERS


def _starts_of_groups(scores: Array, mask: Array, rankings: Array) -> Array:
    """True where the score differs from that of the item above (query, position); padded items are no ties."""
    placed, real = gather(scores, rankings), gather(mask, rankings)
    starts = namespace(mask).ones_like(mask)
    starts[:, 1:] = (placed[:, 1:] != placed[:, :-1]) | ~real[:, 1:]
    return starts
