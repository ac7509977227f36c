"""Control variates of REINFORCE: what is subtracted from each sample's reward to lower the variance of the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from rankpolicy.arrays import Array, namespace
from rankpolicy.kernels.plackett_luce import codes
from rankpolicy.types import RankPolicyError, Reward, unknown_name


class Control(NamedTuple):
    """A control variate."""

    code: int  # of kernels/plackett_luce/codes.py
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
