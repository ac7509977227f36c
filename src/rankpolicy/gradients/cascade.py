"""Rewards that a swap of neighbours changes in a simple way, which is what the gumbel estimator has to know about a reward.

    reward(r) = constant + Σ_terms Σ_k θ_k ρ_{r(k)} c_k,    c_1 = 1,    c_{k+1} = κ_{r(k)} c_k + α_{r(k)}

Each metric declares its own form (metrics/forms.py): additive metrics with κ = 1 and α = 0; AP, RR, ERR and success in their files. For
each of them, item i at rank k and j at rank k + 1 earn (θ_k - θ_{k+1}) c_k (ρ_i - ρ_j) more than the other way round.
"""

from __future__ import annotations

from typing import NamedTuple

from rankpolicy.arrays import Array, alike, as_double, namespace
from rankpolicy.gradients.estimate import num_ranks
from rankpolicy.metrics import METRICS, RewardExpression
from rankpolicy.metrics.ranked import judged_items
from rankpolicy.types import RankPolicyError, Reward


class RewardCascade(NamedTuple):
    """The arrays of the formula above; a query without relevant items has item values 0, since no gradient sees its constant."""

    rank_weights: Array  # (term, position) θ, 0 past the cutoff
    item_values: Array  # (term, query, item) ρ
    keep: Array  # (term, query, item) κ
    add: Array  # (term, query, item) α
    constant: Array  # (query,)
    slopes: Array  # (term, rank) θ_k - θ_{k+1}, cut after the last rank at which a swap matters


def cascade_form(reward: Reward, labels: Array, mask: Array) -> RewardCascade:
    """The form of a reward, in float64.

    >>> import numpy as np
    >>> from rankpolicy.metrics import all_items, parse_metric
    >>> form = cascade_form(parse_metric("rr@2"), np.array([[0.0, 1.0, 3.0]]), all_items(1, 3))
    >>> form.rank_weights.tolist(), form.item_values.tolist(), form.keep.tolist()
    ([[1.0, 0.5, 0.0]], [[[0.0, 1.0, 1.0]]], [[[1.0, 0.0, 0.0]]])
    """
    if not isinstance(reward, RewardExpression) or not reward.has_cascade:
        metrics = ", ".join(name for name, metric in METRICS.items() if metric.has_cascade)
        raise RankPolicyError(
            f"estimator='gumbel' needs a weighted sum of {metrics}; got {reward.name!r}.",
            python="Estimate its gradient by sampling whole rankings: estimator='reinforce'.",
            command_line="Estimate its gradient by sampling whole rankings: --set estimator=reinforce.",
        )
    labels, mask = alike(labels, mask)
    items, xp = judged_items(as_double(labels), mask), namespace(labels)
    forms = [
        METRICS[leaf.metric].cascade_form(
            items, cutoff=leaf.cutoff, conventions=reward.conventions, options=dict(leaf.options)
        )
        for term in reward.terms
        for leaf in term.factors
    ]
    weights = [term.weight for term in reward.terms]
    rank_weights = xp.stack([form.rank_weights for form in forms])
    slopes = rank_weights[:, :-1] - rank_weights[:, 1:]
    return RewardCascade(
        rank_weights=rank_weights,
        item_values=xp.stack([weight * form.item_values for weight, form in zip(weights, forms, strict=True)]),
        keep=xp.stack([form.keep for form in forms]),
        add=xp.stack([form.add for form in forms]),
        constant=xp.stack([weight * form.constant for weight, form in zip(weights, forms, strict=True)]).sum(0),
        slopes=slopes[:, : num_ranks(slopes, of=(reward.name, "slopes"))],
    )
