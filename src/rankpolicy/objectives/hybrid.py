"""BanditRank's objective: the reward of sampled lists, and the cross entropy of affinities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rankpolicy.data.batches import Batch
from rankpolicy.gradients import affinity_reinforce
from rankpolicy.metrics import CustomReward, RewardExpression
from rankpolicy.objectives.exploration import EXPLORATIONS
from rankpolicy.objectives.value import ObjectiveValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Hybrid:
    """γ L_rl + (1 - γ) L_sl (Gampa & Fujita 2019, eq. 12), affinities a = sigmoid(score).

    - L_rl = -E[reward] of lists drawn from the affinity policy, mean over queries;
    - L_sl = -log a of relevant items, -log(1 - a) of the others, mean over items;
    - plus ``empty_penalty`` times max(0, a - 0.5) of the items of queries without relevant ones, mean over items, then over all queries.
    """

    reward: RewardExpression | CustomReward
    gamma: float = 0.5
    num_samples: int = 30
    max_positions: int | None = 40
    epsilon: float = 0.1
    exploration: str = "constant"
    control: str = "greedy"
    empty_penalty: float = 0.0
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
        cross_entropy = binary_cross_entropy_with_logits(scores[batch.mask], is_relevant[batch.mask].to(scores.dtype))
        # The gradient of the first term with respect to scores is minus the estimate: autograd takes it on to the weights.
        loss = -self.gamma * (scores * estimate.gradient).sum() / len(scores) + (1 - self.gamma) * cross_entropy
        reward = _mean(estimate.reward)
        parts = {name: _mean(values) for name, values in estimate.metrics.items()}
        parts |= {"L_rl": -reward, "L_sl": float(cross_entropy.detach())}
        if self.empty_penalty:
            excess = torch.where(batch.mask, torch.sigmoid(scores) - 0.5, 0.0).clamp(min=0).sum(-1)
            of_query = torch.where(is_relevant.any(-1), 0.0, excess / batch.mask.sum(-1).clamp(min=1))
            loss = loss + self.empty_penalty * of_query.mean()
            parts["excess"] = float(of_query.detach().mean())
        return ObjectiveValue(loss, reward, parts)


def _mean(values: Tensor) -> float:
    # A query that the conventions leave out of means has the value NaN.
    return float(values.nan_to_num(nan=0.0).mean())
