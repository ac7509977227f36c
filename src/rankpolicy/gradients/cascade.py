"""Rewards whose change under a swap of neighbours is a product: the form that the gumbel estimator needs.

    reward(r) = constant + Σ_terms Σ_k θ_k ρ_{r(k)} c_k,    c_1 = 1,    c_{k+1} = κ_{r(k)} c_k + α_{r(k)}

    additive metrics  ρ, θ their own                  κ = 1             α = 0
    AP                ρ = relevant / R   θ_k = 1/k    κ = 1             α = relevant    (c_k counts relevant items, one at k included)
    RR                ρ = relevant       θ_k = 1/k    κ = 1 - relevant  α = 0
    ERR               ρ = stop           θ_k = 1/k    κ = 1 - stop      α = 0
    success           ρ = relevant       θ_k = 1      κ = 1 - relevant  α = 0

For each of them, item i at rank k and j at rank k + 1 earn (θ_k - θ_{k+1}) c_k (ρ_i - ρ_j) more than the other way round.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rankpolicy.metrics import ADDITIVE, RewardExpression, additive_form
from rankpolicy.metrics.expected_reciprocal_rank import check_label_scale
from rankpolicy.metrics.expression import Term
from rankpolicy.metrics.ranked import Ranked, divide_by_ideal, ranked
from rankpolicy.types import Conventions, RankPolicyError, Reward

CASCADING = ("ap", "err", "rr", "success")


class CascadeForm(NamedTuple):
    """The arrays of the formula above; a query without relevant items has item values 0."""

    rank_weights: Tensor  # (term, position) θ, 0 past the cutoff
    item_values: Tensor  # (term, query, item) ρ
    keep: Tensor  # (term, query, item) κ
    add: Tensor  # (term, query, item) α
    constant: Tensor  # (query,)

    @property
    def slopes(self) -> Tensor:
        """θ_k - θ_{k+1} (term, rank), cut after the last rank at which a swap matters."""
        slopes = self.rank_weights[:, :-1] - self.rank_weights[:, 1:]
        matters = slopes.any(0).nonzero()
        return slopes[:, : int(matters.max()) + 1 if len(matters) else 0]


def is_cascade(reward: Reward) -> bool:
    """Whether the reward is a weighted sum of additive metrics, AP, RR, ERR and success."""
    return (
        isinstance(reward, RewardExpression)
        and reward.is_linear
        and all(leaf.metric in (*ADDITIVE, *CASCADING) for leaf in reward.leaves)
    )


def cascade_form(reward: Reward, labels: Tensor, mask: Tensor) -> CascadeForm:
    """The form of a reward, in float64.

    >>> from rankpolicy.metrics import all_items, parse_metric
    >>> form = cascade_form(parse_metric("rr@2"), torch.tensor([[0.0, 1.0, 3.0]]), all_items(1, 3))
    >>> form.rank_weights.tolist(), form.item_values.tolist(), form.keep.tolist()
    ([[1.0, 0.5, 0.0]], [[[0.0, 1.0, 1.0]]], [[[1.0, 0.0, 0.0]]])
    """
    if not isinstance(reward, RewardExpression) or not is_cascade(reward):
        raise RankPolicyError(
            f"estimator='gumbel' needs a weighted sum of {', '.join((*ADDITIVE, *CASCADING))}; got {reward.name!r}. "
            "Estimate its gradient by sampling whole rankings: estimator='reinforce'."
        )
    nothing_placed = torch.empty(len(labels), 0, dtype=torch.long, device=labels.device)
    given = ranked(nothing_placed, labels.double(), mask)
    terms = [_term_form(term, given, reward.conventions) for term in reward.terms]
    weights, values, keep, add, constants = (torch.stack(parts) for parts in zip(*terms, strict=True))
    return CascadeForm(weights, values, keep, add, constants.sum(0))


def _term_form(term: Term, given: Ranked, conventions: Conventions) -> CascadeForm:
    """The form of a weight times a metric, without the axis of terms."""
    (leaf,) = term.factors
    zeros, ones = torch.zeros_like(given.labels), torch.ones_like(given.labels)
    form = additive_form(
        leaf.metric, given.labels, given.mask, cutoff=leaf.cutoff, conventions=conventions, **dict(leaf.options)
    )
    if form is not None:
        # All items earn the weight of the last rank at least, whatever their order: avg_rank@10 too looks at ten ranks only.
        last, values = form.rank_weights[-1], term.weight * form.item_values
        return CascadeForm(form.rank_weights - last, values, ones, zeros, last * values.sum(-1))
    ranks = torch.arange(1, given.labels.shape[-1] + 1, device=given.labels.device)
    of_ranks = torch.ones_like(ranks).double() if leaf.metric == "success" else 1.0 / ranks.double()
    rank_weights = torch.where(ranks <= (leaf.cutoff or len(ranks)), of_ranks, 0.0)
    if leaf.metric == "err":
        check_label_scale(float(given.labels.max()) if given.labels.numel() else 0.0, conventions)
        stops = (torch.exp2(given.labels) - 1) / 2**conventions.max_label
        return CascadeForm(rank_weights, term.weight * stops, 1 - stops, zeros, zeros[:, 0])
    relevant = given.relevant(conventions)
    if leaf.metric in ("rr", "success"):
        # With relevant items anywhere in a list that is looked at whole, success is 1 whatever the order.
        last = rank_weights[-1] if leaf.metric == "success" else torch.zeros_like(rank_weights[-1])
        constant = last * term.weight * relevant.amax(-1)
        return CascadeForm(rank_weights - last, term.weight * relevant, 1 - relevant, zeros, constant)
    shares = divide_by_ideal(relevant, relevant.sum(-1, keepdim=True))
    return CascadeForm(rank_weights, term.weight * shares, ones, relevant, zeros[:, 0])
