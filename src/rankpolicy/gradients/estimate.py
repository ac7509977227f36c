"""What an estimator returns, and the face that all of them share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from rankpolicy.types import Reward


@dataclass(frozen=True, slots=True, eq=False)
class GradientEstimate:
    """dU/dscores of each query, and the utility U it belongs to."""

    gradient: Tensor  # (query, item), 0 on padding
    reward: Tensor  # (query,) estimated expected reward
    # The reward's metrics (query,) by name, where they were measured apart.
    metrics: Mapping[str, Tensor] = field(default_factory=dict)

    def to(self, device: torch.device) -> GradientEstimate:
        metrics = {name: values.to(device) for name, values in self.metrics.items()}
        return GradientEstimate(self.gradient.to(device), self.reward.to(device), metrics)


class Estimator(Protocol):
    """scores, labels and mask (query, item) -> gradient of the expected reward in score space."""

    def __call__(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor,
        *,
        reward: Reward,
        num_samples: int = ...,
        control: str = ...,
        generator: torch.Generator | None = ...,
    ) -> GradientEstimate: ...
