"""The estimator with the least variance that the reward and the length of the lists allow."""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.gradients.estimate import GradientEstimate
from rankpolicy.gradients.exact import exact
from rankpolicy.gradients.reinforce import reinforce
from rankpolicy.metrics import CustomReward, RewardExpression

# The exact gradient takes time in proportion to items x cutoff; up to here it costs less than the samples it replaces.
_MOST_EXACT_CELLS = 20_000


def auto(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    reward: RewardExpression | CustomReward,
    num_samples: int = 32,
    control: str = "leave_one_out",
    generator: torch.Generator | None = None,
) -> GradientEstimate:
    """``exact`` where the reward is rank weights times item values and lists are not too long, ``reinforce`` elsewhere."""
    num_items = scores.shape[-1]
    if reward.is_additive and num_items * min(num_items, reward.cutoff or num_items) <= _MOST_EXACT_CELLS:
        return exact(scores, labels, mask, reward=reward)
    return reinforce(scores, labels, mask, reward=reward, num_samples=num_samples, control=control, generator=generator)
