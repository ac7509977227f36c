"""Expected reward of a Plackett-Luce policy, ascended along an estimate of its gradient in score space."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from rankpolicy.data.batches import Batch
from rankpolicy.gradients import ESTIMATORS
from rankpolicy.metrics import CustomReward, RewardExpression
from rankpolicy.objectives.value import ObjectiveValue, ascent_loss, choice_entropy


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyGradient:
    """-E[reward], mean over queries, minus ``entropy`` times the entropy of softmax(scores)."""

    reward: RewardExpression | CustomReward
    estimator: str = "auto"
    num_samples: int = 32
    control: str = "leave_one_out"
    entropy: float = 0.0
    report_name: str = "reward"

    def __call__(self, scores: Tensor, batch: Batch) -> ObjectiveValue:
        estimate = ESTIMATORS.named(self.estimator)(
            scores.detach(),
            batch.labels,
            batch.mask,
            reward=self.reward,
            num_samples=self.num_samples,
            control=self.control,
        )
        loss = ascent_loss(scores, estimate.gradient, batch)
        if self.entropy:
            loss = loss - self.entropy * choice_entropy(scores, batch)
        return ObjectiveValue(loss, float(batch.mean_over_queries(estimate.reward)))
