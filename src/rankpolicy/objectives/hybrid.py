"""BanditRank's objective: the reward of sampled lists, and a supervised loss of affinities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from rankpolicy.data.batches import Batch
from rankpolicy.declarations.settings import ReadWhen, check_settings, setting, settings_class
from rankpolicy.gradients import CONTROLS, affinity_reinforce
from rankpolicy.gradients.estimate import check_control
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.metrics.expression import RewardExpression, Term
from rankpolicy.objectives.exploration import EPSILON
from rankpolicy.objectives.policy_gradient import ascent_loss
from rankpolicy.objectives.supervised_losses import SUPERVISED
from rankpolicy.objectives.value import ObjectiveValue

LEAST_SHORTFALL = 1e-3  # a metric at its highest value would take all the weight


@dataclass(kw_only=True, eq=False, repr=False)
class HybridSettings:
    """What BanditRank and its objective have in common."""

    reward: Any = setting(
        "mean(ap, ndcg@10)",
        """What is maximised: a metric ("ndcg@10"), a mix ("mean(ap, ndcg@10)"), a mix whose weights are trained
        ("trained_mean(ap, ndcg@10)") or a function of (rankings, labels, mask), which gives one number per ranking.""",
    )
    gamma: float = setting(
        0.5,
        "Share of the reward in the loss; the rest is the supervised loss. 1 is the reward alone; at 0 it is only measured.",
        at_least=0,
        at_most=1,
    )
    loss: Any = setting(
        "cross_entropy",
        """The supervised loss: "cross_entropy" and "squared" compare the affinity of each item with its relevance, "softmax" and "list_net"
        the first choice of the policy with the relevance or the grades of the list; or a value with settings such as
        rankpolicy.objectives.CrossEntropyLoss(empty_penalty=1.0).""",
        read_when=ReadWhen(
            condition="gamma is below 1, or its empty_penalty above 0",
            holds=lambda owner: owner.gamma < 1 or SUPERVISED.of(owner.loss).empty_penalty > 0,
        ),
    )
    num_samples: int = setting(
        30,
        "Lists drawn per query and step. More samples, less noise and more time; 10 to 50 is usual.",
        at_least=1,
    )
    max_positions: int | None = setting(
        40, "Length of the lists drawn in training; None draws whole lists.", at_least=1
    )
    epsilon: float | Any = setting(
        0.1,
        """Probability that an item is chosen uniformly at random instead of by affinity: a number; "decaying" (by a factor of 0.9 per
        epoch) or "entropy" (higher for queries whose first choice is nearly certain), from 0.1; or a value such as
        rankpolicy.objectives.DecayingExploration(share=0.3, decay=0.8).""",
        at_least=0,
        at_most=1,
    )
    control: str = setting(
        "greedy",
        """What is subtracted from the reward of a sampled list to lower the noise: the reward of the sorted list ("greedy"), the mean
        reward of the other samples ("leave_one_out"), of all samples ("mean"), or nothing ("none").""",
        choices=CONTROLS,
    )

    def check_together(self) -> None:
        """Refuse fewer samples than the control variate needs."""
        check_control(self.control, self.num_samples)


@settings_class
class Hybrid(HybridSettings):
    """γ L_rl + (1 - γ) L_sl (Gampa & Fujita 2019, eq. 12), affinities a = sigmoid(score).

    - L_rl = -E[reward] of lists drawn from the affinity policy, mean over queries;
    - L_sl is the supervised ``loss``, such as the cross entropy -[r log a + (1 - r) log(1 - a)], mean over items; r is 1 for relevant items
      and 0 for others or, with ``targets`` "labels", the label itself, such as a relevance estimated from clicks, which may exceed 1;
    - plus the ``empty_penalty`` of the loss times max(0, a - 0.5) of the items of queries without relevant ones, mean over items, then
      over all queries.

    The weights of a reward "trained_mean(ap, ndcg@10)" change from epoch to epoch, see ``trained_weights``.
    """

    targets: str = setting(
        "relevant",
        """Target of the supervised loss: "relevant" (1 or 0) or "labels" (the label itself).""",
        choices=("relevant", "labels"),
    )
    epoch: int = setting(0, "How many epochs are done.", at_least=0)
    report_name: str = setting("reward", "Name of the number that is reported after each epoch.")

    def __post_init__(self) -> None:
        EPSILON.of(self.epsilon), SUPERVISED.of(self.loss)
        check_settings(self)
        self.check_together()
        self.reward = reward_to_maximise(self.reward)

    def at_epoch(self, epoch: int, parts: Mapping[str, Sequence[float]]) -> Hybrid:
        """What is minimised in the next epoch.

        Parameters
        ----------
        epoch
            How many epochs are done.
        parts
            The parts that were reported, by name, one number per epoch.
        """
        reward = self.reward
        if getattr(reward, "trained", False):
            reward = with_trained_weights(reward, parts)
        return replace(self, epoch=epoch, reward=reward)

    def __call__(self, scores: Tensor, batch: Batch, *, generator: torch.Generator | None = None) -> ObjectiveValue:
        """The loss of these scores.

        Parameters
        ----------
        scores
            Scores (query, item).
        batch
            The queries: labels, mask, weights.
        generator
            Where lists are drawn from; None: from torch's global generator.
        """
        fixed, supervised = scores.detach(), SUPERVISED.of(self.loss)
        estimate = affinity_reinforce(
            fixed,
            batch.labels,
            batch.mask,
            reward=self.reward,
            num_samples=self.num_samples,
            max_positions=self.max_positions,
            epsilon=EPSILON.of(self.epsilon).epsilon(self.epoch, fixed, batch.mask),
            control=self.control,
            generator=generator,
        )
        is_relevant = (batch.labels >= self.reward.conventions.relevant_from) & batch.mask
        targets = is_relevant if self.targets == "relevant" else batch.labels
        guide = supervised.loss(scores, batch, targets.to(scores.dtype))
        loss = ascent_loss(scores, estimate.gradient, batch, share=self.gamma) + (1 - self.gamma) * guide
        reward = _mean(estimate.reward, batch)
        parts = {name: _mean(values, batch) for name, values in estimate.metrics.items()}
        parts |= {"L_rl": -reward, "L_sl": guide.detach()}
        if getattr(self.reward, "trained", False):
            parts |= {f"weight of {term.factors[0]}": reward.new_tensor(term.weight) for term in self.reward.terms}
        if supervised.empty_penalty:
            excess = torch.where(batch.mask, torch.sigmoid(scores) - 0.5, 0.0).clamp(min=0).sum(-1)
            of_query = torch.where(is_relevant.any(-1), 0.0, excess / batch.mask.sum(-1).clamp(min=1))
            excess_mean = batch.mean_over_queries(of_query)
            loss = loss + supervised.empty_penalty * excess_mean
            parts["excess"] = excess_mean.detach()
        return ObjectiveValue(loss, reward, parts)


def _mean(values: Tensor, batch: Batch) -> Tensor:
    # A query that the conventions leave out of means has the value NaN.
    return batch.mean_over_queries(values.nan_to_num(nan=0.0))


def trained_weights(means: Sequence[float]) -> list[float]:
    """Weights, summing to 1, for metrics that are at most 1 and had these means.

    The best weights for a reward to be maximised alone would all go to the metric that is easiest. Trained are therefore weights that
    balance the shortfalls L_k = 1 - (mean of metric k): with sum_k w_k L_k - log w_k (Kendall, Gal & Cipolla 2018, weights of losses by
    their uncertainty), whose minimum over the weights is w_k = 1 / L_k. For the network this is to lower sum_k log L_k: each metric's
    shortfall by the same proportion, whatever its scale. Network and weights take turns: after every epoch the weights go to that
    minimum, and are scaled to sum to 1.

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
