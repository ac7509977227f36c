"""What an estimator returns, and the signature that all of them share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from rankpolicy.display import short_repr
from rankpolicy.kernels import can_read
from rankpolicy.types import Reward


@dataclass(frozen=True, slots=True, eq=False)
class GradientEstimate:
    """dU/dscores of each query, and the utility U it belongs to.

    Parameters
    ----------
    gradient
        (query, item), 0 on padding.
    reward
        Estimated expected reward U (query,).
    metrics
        The metrics of the reward (query,) by name, where they were measured separately.
    """

    gradient: Tensor  # (query, item)
    reward: Tensor  # (query,)
    metrics: Mapping[str, Tensor] = field(default_factory=dict)

    __repr__ = short_repr

    def to(self, device: torch.device) -> GradientEstimate:
        """The same estimate on another device.

        Parameters
        ----------
        device
            Where the tensors go.
        """
        metrics = {name: values.to(device) for name, values in self.metrics.items()}
        return GradientEstimate(self.gradient.to(device), self.reward.to(device), metrics)


class Estimator(Protocol):
    """scores, labels and mask (query, item) -> gradient of the expected reward in score space.

    Estimators that do not draw, or need no control variate, ignore the arguments that are about these.
    """

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


def draw_seed(generator: torch.Generator | None) -> int:
    """A seed for a kernel, drawn from the generator."""
    device = None if generator is None else generator.device
    return int(torch.randint(2**62, (), generator=generator, device=device))


def draw_seed_on(device: torch.device, generator: torch.Generator | None) -> Tensor:
    """A seed (1,) for a kernel on this device. Without a generator it is drawn there, which a CUDA graph repeats with other numbers."""
    source = device if generator is None else generator.device
    return torch.randint(2**62, (1,), generator=generator, device=source).to(device)


_NUM_RANKS: dict[Hashable, int] = {}


def num_ranks(rank_weights: Tensor, *, of: Hashable) -> int:
    """How many ranks there are up to the last whose weight is not 0; weights are (..., position).

    They depend on the reward and the number of positions alone, so that a device is asked once and training steps wait for nothing.
    """
    if not rank_weights.is_cuda:
        return _last_nonzero(rank_weights)
    key = (of, rank_weights.shape[-1])
    if key not in _NUM_RANKS:
        if not can_read(rank_weights):
            return rank_weights.shape[-1]
        _NUM_RANKS[key] = _last_nonzero(rank_weights)
    return _NUM_RANKS[key]


def _last_nonzero(rank_weights: Tensor) -> int:
    indices = rank_weights.nonzero()[:, -1]
    return int(indices.max()) + 1 if len(indices) else 0
