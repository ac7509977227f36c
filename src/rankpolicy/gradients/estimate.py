"""What an estimator returns, and the signature that all of them share.

Control variates of REINFORCE: what is subtracted from each sample's reward to lower the variance of the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from typing import Any, NamedTuple, Protocol

from rankpolicy.arrays import Array, Generator, is_tensor, namespace
from rankpolicy.display import frozen_value
from rankpolicy.kernels import can_read, codes
from rankpolicy.types import RankPolicyError, Reward, unknown_name


@frozen_value()
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


class Control(NamedTuple):
    """A control variate."""

    code: int  # of kernels/codes.py
    advantages: Callable[[Array, Array], Array]  # rewards (sample, query), greedy reward (query,) -> (sample, query)


def leave_one_out_advantages(rewards: Array, greedy_reward: Array) -> Array:
    """R_s minus the mean of the other samples' rewards: unbiased, and the best of the sample-based controls.

    >>> import numpy as np
    >>> leave_one_out_advantages(np.array([[1.0], [0.0], [0.5]]), np.array([0.0]))[:, 0]
    array([ 0.75, -0.75,  0.  ])
    """
    num_samples = len(rewards)
    return (rewards - rewards.mean(0)) * (num_samples / (num_samples - 1))


def mean_advantages(rewards: Array, greedy_reward: Array) -> Array:
    """R_s minus the mean of all samples (Singh & Joachims 2019): the expected gradient shrinks by (S - 1) / S."""
    return rewards - rewards.mean(0)


def greedy_advantages(rewards: Array, greedy_reward: Array) -> Array:
    """R_s minus the reward of the sorted list (self-critical; Gampa & Fujita 2019): unbiased."""
    return rewards - greedy_reward


def plain_rewards(rewards: Array, greedy_reward: Array) -> Array:
    """No control: unbiased, with the highest variance."""
    return rewards


CONTROLS: dict[str, Control] = {
    "leave_one_out": Control(codes.LEAVE_ONE_OUT, leave_one_out_advantages),
    "mean": Control(codes.MEAN, mean_advantages),
    "greedy": Control(codes.GREEDY, greedy_advantages),
    "none": Control(codes.NONE, plain_rewards),
}


def check_control(control: str, num_samples: int) -> None:
    """Check the name of a control and that there are enough samples for it."""
    if control not in CONTROLS:
        raise RankPolicyError(unknown_name("control", control, CONTROLS))
    if num_samples < 1:
        raise RankPolicyError(f"num_samples must be at least 1; got {num_samples}.")
    if control == "leave_one_out" and num_samples < 2:
        raise RankPolicyError(
            "control='leave_one_out' compares samples with each other: num_samples must be at least 2; got 1.",
            python="Draw more, or use control='greedy'.",
            command_line="Draw more, or use --set control=greedy.",
        )


def check_rewards(reward: Reward, values: Array) -> None:
    """Refuse rewards of a user's function that are not finite, which training would take for a network that diverged."""
    wrong = ~namespace(values).isfinite(values)
    if wrong.any():
        counts = f"{int(wrong.sum())} of {math.prod(values.shape)}"
        raise RankPolicyError(
            f"the reward {reward.name!r} must give finite numbers; {counts} rankings got NaN or infinity. "
            "Let the function return 0 for a query that it cannot judge."
        )
