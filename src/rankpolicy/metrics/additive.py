"""Additive metrics: rank weights times item values, the form that exact gradients need."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rankpolicy.metrics.normalized_dcg import ideal_dcg
from rankpolicy.metrics.rank_biased_precision import persistence_weights
from rankpolicy.metrics.ranked import discounts, divide_by_ideal, ranked
from rankpolicy.types import Conventions

ADDITIVE = ("avg_rank", "dcg", "ndcg", "p", "rbp", "recall")


class AdditiveForm(NamedTuple):
    """metric(ranking) = sum over positions k of rank_weights[k] * item_values[ranking[k]]."""

    rank_weights: Tensor  # (position,), 0 past the cutoff
    item_values: Tensor  # (query, item), 0 at padded items


def additive_form(
    metric: str,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
    persistence: float = 0.8,
) -> AdditiveForm | None:
    """Rank weights θ and item values ρ with metric = sum over k of θ_k ρ_{r(k)} for full rankings r; None for others.

    A query without relevant items has item values 0: its metric is a constant, which no gradient sees.

    >>> form = additive_form("ndcg", torch.tensor([[0.0, 1.0, 3.0]]), torch.ones(1, 3, dtype=torch.bool), cutoff=2)
    >>> form.rank_weights, form.item_values  # values 1/7.63 and 7/7.63
    (tensor([1.0000, 0.6309, 0.0000]), tensor([[0.0000, 0.1310, 0.9173]]))
    """
    if metric not in ADDITIVE:
        return None
    given = ranked(torch.empty(labels.shape[0], 0, dtype=torch.long, device=labels.device), labels, mask, cutoff=cutoff)
    num_positions = labels.shape[-1]
    relevant = given.relevant(conventions)
    num_relevant = relevant.sum(-1, keepdim=True)
    before_cutoff = torch.arange(num_positions, device=labels.device) < (cutoff or num_positions)
    ones = before_cutoff.to(relevant.dtype)
    if metric in ("dcg", "ndcg"):
        gains = given.gains(conventions)
        values = gains if metric == "dcg" else divide_by_ideal(gains, ideal_dcg(gains, cutoff)[:, None])
        return AdditiveForm(discounts(num_positions, like=gains) * before_cutoff, values)
    if metric == "p":
        num_items = mask.sum(-1, keepdim=True).to(relevant.dtype)
        return AdditiveForm(ones, relevant / cutoff if cutoff else divide_by_ideal(relevant, num_items))
    if metric == "recall":
        return AdditiveForm(ones, divide_by_ideal(relevant, num_relevant))
    if metric == "rbp":
        return AdditiveForm(persistence_weights(num_positions, persistence, like=relevant) * before_cutoff, relevant)
    ranks = torch.arange(1, num_positions + 1, dtype=relevant.dtype, device=labels.device)
    return AdditiveForm(ranks.clamp(max=(cutoff or num_positions) + 1), divide_by_ideal(relevant, num_relevant))
