"""Trained weights of a reward that is a weighted average of metrics: ``reward="trained_mean(ap, ndcg@10)"``.

The best weights for a reward to be maximised alone would all go to the metric that is easiest. Trained are therefore weights that balance
the shortfalls L_k = 1 - (mean of metric k): with

    sum_k w_k L_k - log w_k

(Kendall, Gal & Cipolla 2018, weights of losses by their uncertainty), whose minimum over the weights is w_k = 1 / L_k. For the network
this is to lower sum_k log L_k: each metric's shortfall by the same proportion, whatever its scale. Network and weights take turns: after
every epoch the weights go to that minimum, and are scaled to sum to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rankpolicy.metrics.expression import RewardExpression, Term

LEAST_SHORTFALL = 1e-3  # a metric at its highest value would take all the weight


def trained_weights(means: Sequence[float]) -> list[float]:
    """Weights, summing to 1, for metrics that are at most 1 and had these means.

    >>> trained_weights([0.5, 0.75])  # shortfalls 1/2 and 1/4
    [0.3333333333333333, 0.6666666666666666]
    """
    weights = [1 / max(1 - mean, LEAST_SHORTFALL) for mean in means]
    return [weight / sum(weights) for weight in weights]


def with_trained_weights(reward: RewardExpression, parts: Mapping[str, Sequence[float]]) -> RewardExpression:
    """The reward with the weights that the last epoch suggests; before the first, as it is."""
    leaves = reward.leaves
    if not all(parts.get(str(leaf)) for leaf in leaves):
        return reward
    weights = trained_weights([parts[str(leaf)][-1] for leaf in leaves])
    terms = tuple(Term(weight, (leaf,)) for weight, leaf in zip(weights, leaves, strict=True))
    return replace(reward, terms=terms)
