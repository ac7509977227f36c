"""Control variates of REINFORCE: what is subtracted from each sample's reward to lower the variance of the gradient."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from rankpolicy.types import RankPolicyError, unknown_name


def leave_one_out_advantages(rewards: Tensor, greedy_reward: Tensor) -> Tensor:
    """R_s minus the mean of the other samples' rewards: unbiased, and the best of the sample-based controls.

    >>> import torch
    >>> leave_one_out_advantages(torch.tensor([[1.0], [0.0], [0.5]]), torch.tensor([0.0])).squeeze(-1)
    tensor([ 0.7500, -0.7500,  0.0000])
    """
    num_samples = len(rewards)
    return (rewards - rewards.mean(0)) * (num_samples / (num_samples - 1))


def mean_advantages(rewards: Tensor, greedy_reward: Tensor) -> Tensor:
    """R_s minus the mean of all samples (Singh & Joachims 2019): the expected gradient shrinks by (S - 1) / S."""
    return rewards - rewards.mean(0)


def greedy_advantages(rewards: Tensor, greedy_reward: Tensor) -> Tensor:
    """R_s minus the reward of the sorted list (self-critical; Gampa & Fujita 2019): unbiased."""
    return rewards - greedy_reward


def plain_rewards(rewards: Tensor, greedy_reward: Tensor) -> Tensor:
    """No control: unbiased, and the noisiest."""
    return rewards


CONTROLS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "leave_one_out": leave_one_out_advantages,
    "mean": mean_advantages,
    "greedy": greedy_advantages,
    "none": plain_rewards,
}


def check_control(control: str, num_samples: int) -> None:
    if control not in CONTROLS:
        raise RankPolicyError(unknown_name("control", control, CONTROLS))
    if num_samples < 1:
        raise RankPolicyError(f"num_samples must be at least 1; got {num_samples}.")
    if control == "leave_one_out" and num_samples < 2:
        raise RankPolicyError(
            "control='leave_one_out' compares samples with each other: num_samples must be at least 2."
        )
