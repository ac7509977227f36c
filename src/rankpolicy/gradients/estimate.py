"""What an estimator returns, and the signature that all of them share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rankpolicy.arrays import Array, Generator, is_tensor, namespace
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

    gradient: Array  # (query, item)
    reward: Array  # (query,)
    metrics: Mapping[str, Array] = field(default_factory=dict)

    __repr__ = short_repr

    def to(self, device: Any) -> GradientEstimate:
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
        scores: Array,
        labels: Array,
        mask: Array,
        *,
        reward: Reward,
        num_samples: int = ...,
        control: str = ...,
        generator: Generator | None = ...,
    ) -> GradientEstimate: ...


def draw_seed_on(device: Any, generator: Any) -> Array:
    """A seed (1,) for a kernel on this device. Without a generator it is drawn there, which a CUDA graph repeats with other numbers."""
    import torch

    source = device if generator is None else generator.device
    return torch.randint(2**62, (1,), generator=generator, device=source).to(device)


_NUM_RANKS: dict[Hashable, int] = {}


def num_ranks(rank_weights: Array, *, of: Hashable) -> int:
    """How many ranks there are up to the last whose weight is not 0; weights are (..., position).

    They depend on the reward and the number of positions alone, so that a device is asked once and training steps wait for nothing.
    """
    if not is_tensor(rank_weights) or not rank_weights.is_cuda:
        return _last_nonzero(rank_weights)
    key = (of, rank_weights.shape[-1])
    if key not in _NUM_RANKS:
        if not can_read(rank_weights):
            return rank_weights.shape[-1]
        _NUM_RANKS[key] = _last_nonzero(rank_weights)
    return _NUM_RANKS[key]


def _last_nonzero(rank_weights: Array) -> int:
    indices = namespace(rank_weights).nonzero(rank_weights)[-1]
    return int(indices.max()) + 1 if len(indices) else 0
