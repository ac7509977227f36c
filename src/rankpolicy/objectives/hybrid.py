"""BanditRank's objective: the reward of sampled lists, and the cross entropy of affinities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rankpolicy.data.batches import Batch
from rankpolicy.gradients import affinity_reinforce
from rankpolicy.objectives.exploration import EXPLORATIONS
from rankpolicy.objectives.value import ObjectiveValue, ascent_loss, item_weights
from rankpolicy.types import Reward


@dataclass(frozen=True, slots=True, kw_only=True)
class Hybrid:
    """γ L_rl + (1 - γ) L_sl (Gampa & Fujita 2019, eq. 12), affinities a = sigmoid(score).

    - L_rl = -E[reward] of lists drawn from the affinity policy, mean over queries;
    - L_sl = -[r log a + (1 - r) log(1 - a)], mean over items; r is 1 for relevant items and 0 for others or, with ``targets`` "labels",
      the label itself, such as a relevance estimated from clicks, which may exceed 1;
    - plus ``empty_penalty`` times max(0, a - 0.5) of the items of queries without relevant ones, mean over items, then over all queries.
    """

    reward: Reward
    gamma: float = 0.5
    num_samples: int = 30
    max_positions: int | None = 40
    epsilon: float = 0.1
    exploration: str = "constant"
    control: str = "greedy"
    empty_penalty: float = 0.0
    targets: Literal["relevant", "labels"] = "relevant"
    epoch: int = 0
    report_name: str = "reward"

    def at_epoch(self, epoch: int) -> Hybrid:
        return replace(self, epoch=epoch)

    def __call__(self, scores: Tensor, batch: Batch) -> ObjectiveValue:
        fixed = scores.detach()
        estimate = affinity_reinforce(
            fixed,
            batch.labels,
            batch.mask,
            reward=self.reward,
            num_samples=self.num_samples,
            max_positions=self.max_positions,
            epsilon=EXPLORATIONS[self.exploration](self.epsilon, self.epoch, fixed, batch.mask),
            control=self.control,
        )
        is_relevant = (batch.labels >= self.reward.conventions.relevant_from) & batch.mask
        targets = is_relevant if self.targets == "relevant" else batch.labels
        cross_entropy = binary_cross_entropy_with_logits(
            scores[batch.mask], targets[batch.mask].to(scores.dtype), weight=item_weights(batch)
        )
        loss = ascent_loss(scores, estimate.gradient, batch, share=self.gamma) + (1 - self.gamma) * cross_entropy
        reward = _mean(estimate.reward, batch)
        parts = {name: _mean(values, batch) for name, values in estimate.metrics.items()}
        parts |= {"L_rl": -reward, "L_sl": float(cross_entropy.detach())}
        if self.empty_penalty:
            excess = torch.where(batch.mask, torch.sigmoid(scores) - 0.5, 0.0).clamp(min=0).sum(-1)
            of_query = torch.where(is_relevant.any(-1), 0.0, excess / batch.mask.sum(-1).clamp(min=1))
            excess_mean = batch.mean_over_queries(of_query)
            loss = loss + self.empty_penalty * excess_mean
            parts["excess"] = float(excess_mean.detach())
        return ObjectiveValue(loss, reward, parts)


def _mean(values: Tensor, batch: Batch) -> float:
    # A query that the conventions leave out of means has the value NaN.
    return float(batch.mean_over_queries(values.nan_to_num(nan=0.0)))
