"""The value of scores when items are tied: the mean over all orders of the items that have equal scores (McSherry & Najork 2008)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.metrics.expression import Leaf, RewardExpression
from rankpolicy.metrics.members import METRICS
from rankpolicy.metrics.metric import CascadeForm
from rankpolicy.metrics.ranked import judged_items, rank_by_score
from rankpolicy.types import Reward

if TYPE_CHECKING:
    from torch import Tensor

NUM_ORDERS = 64  # random orders of tied items, for rewards whose expectation has no closed form


def expected_value(measure: Reward, scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Value (query,) of ranking by scores (query, item), in expectation over the orders of tied items.

    Exact for metrics and their weighted sums. Products of metrics and functions of one's own are averaged over 64 random orders.

    >>> import torch
    >>> from rankpolicy.metrics import all_items, parse_metric
    >>> labels = torch.tensor([[1.0, 0.0, 0.0]])
    >>> expected_value(parse_metric("rr"), torch.zeros(1, 3), labels, all_items(1, 3))  # (1 + 1/2 + 1/3) / 3
    tensor([0.6111])
    """
    rankings = rank_by_score(scores, mask)
    values = measure(rankings, labels, mask)
    tied = _starts_of_groups(scores, mask, rankings).logical_not().any(-1)
    if not tied.any():
        return values
    tied_queries = scores[tied], labels[tied], mask[tied]
    values = values.clone()
    values[tied] = (
        _of_expression(measure, *tied_queries)
        if isinstance(measure, RewardExpression) and measure.has_exact_expectation
        else _over_random_orders(measure, *tied_queries)
    ).to(values.dtype)
    return values


def _of_expression(measure: RewardExpression, scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    rankings = rank_by_score(scores, mask)
    starts = _starts_of_groups(scores, mask, rankings)

    def expected(leaf: Leaf) -> Tensor:
        items = judged_items(labels, mask, cutoff=leaf.cutoff)
        form = METRICS[leaf.metric].cascade_form(
            items, cutoff=leaf.cutoff, conventions=measure.conventions, options=dict(leaf.options)
        )
        # Where all item values are 0, every ranking has the value of a query without relevant items.
        any_ranking = measure.leaf_values(leaf, rankings, labels, mask)
        return expected_cascade(form, rankings, starts).where(form.item_values.any(-1), any_ranking)

    return measure.combine({leaf: expected(leaf) for leaf in measure.leaves})


def expected_cascade(form: CascadeForm, rankings: Tensor, starts: Tensor) -> Tensor:
    """Expectation (query,) of a metric in its cascade form, over all orders within groups of tied items.

    A group of m items at positions a, a + 1, ... adds Σ_j θ_{a+j} E[ρ c_{a+j}], and E[ρ c_{a+j}] = c_a B_j + Σ_{t < j} G_t with means over
    all choices of different items of the group: A_j of the product of j keeps κ, B_j of ρ times j keeps, H_j of α times j keeps, G_j of ρ
    times α times j keeps. The group below starts with c = c_a A_m + Σ_t H_t. Each mean over m items follows from those over m - 1.
    """
    import torch

    num_queries, n = rankings.shape
    value, keep, add = (values.gather(-1, rankings) for values in (form.item_values, form.keep, form.add))
    j = torch.arange(n + 1, dtype=value.dtype)
    none = value.new_zeros(num_queries, n + 1)
    A, B, H, G = none.clone(), none, none, none
    start = torch.zeros(num_queries, dtype=torch.long)
    c, total = value.new_ones(num_queries), form.constant.clone()
    for p in range(n):
        new = starts[:, p, None]
        A, B, H, G = A.masked_fill(new, 0), B.masked_fill(new, 0), H.masked_fill(new, 0), G.masked_fill(new, 0)
        A[:, 0] = 1
        start = start.masked_fill(new[:, 0], p)
        m = (p + 1 - start).to(value.dtype)[:, None]
        rho, kappa, alpha = value[:, p, None], keep[:, p, None], add[:, p, None]

        def with_item(means: Tensor, marks: int, m: Tensor = m, kappa: Tensor = kappa) -> Tensor:
            """The share of choices without the item, or with it among the keeps; ``marks`` items are chosen besides the keeps."""
            with_one_keep = means.roll(1, -1)
            with_one_keep[:, 0] = 0
            return ((m - marks - j) * means + j * kappa * with_one_keep) / m

        A, B, H, G = (
            with_item(A, 0),
            with_item(B, 1) + rho * A / m,
            with_item(H, 1) + alpha * A / m,
            with_item(G, 2) + (rho * H + alpha * B) / m,
        )
        ends = starts[:, p + 1] if p + 1 < n else torch.ones_like(new[:, 0])
        inside = j[:-1] < m
        at = (start[:, None] + torch.arange(n)).clamp(max=n - 1)
        expected = c[:, None] * B[:, :-1] + (G.cumsum(-1) - G)[:, :-1]
        group = (form.rank_weights[at] * expected * inside).sum(-1)
        total = total + group * ends
        below = c * A.gather(-1, m.long())[:, 0] + (H[:, :-1] * inside).sum(-1)
        c = below.where(ends, c)
    return total


def _over_random_orders(measure: Reward, scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    import torch

    generator = torch.Generator().manual_seed(0)
    total = scores.new_zeros(len(scores))
    for _ in range(NUM_ORDERS):
        shuffled = torch.rand(scores.shape, generator=generator).masked_fill(~mask, 2.0).argsort(-1)
        order = rank_by_score(scores.gather(-1, shuffled), mask.gather(-1, shuffled))
        total += measure(shuffled.gather(-1, order), labels, mask)
    return total / NUM_ORDERS


def _starts_of_groups(scores: Tensor, mask: Tensor, rankings: Tensor) -> Tensor:
    """True where the score differs from that of the item above (query, position); padded items are no ties."""
    placed, real = scores.gather(-1, rankings), mask.gather(-1, rankings)
    starts = placed.new_ones(placed.shape).bool()
    starts[:, 1:] = (placed[:, 1:] != placed[:, :-1]) | ~real[:, 1:]
    return starts
