"""REINFORCE for Plackett-Luce policies, in closed form and for any reward.

    dU/ds_i = E[(R - control) * dlog P/ds_i],    dlog P/ds_i = 1[rank(i) <= c] - sum_{p <= min(rank(i), c)} exp(s_i) / Z_p

with Z_p the summed exp(score) of the items not placed before position p (Williams 1992; Singh & Joachims 2019). Where the reward looks at
the first c positions only, so does log P: the same expectation with less variance.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.gradients.controls import CONTROLS, check_control
from rankpolicy.gradients.estimate import GradientEstimate
from rankpolicy.metrics import term_table
from rankpolicy.policies.plackett_luce import PlackettLuce, check_scores, log_remaining_weights, ranked_log_weights
from rankpolicy.types import Reward


def reinforce(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    reward: Reward,
    num_samples: int = 32,
    control: str = "leave_one_out",
    generator: torch.Generator | None = None,
) -> GradientEstimate:
    """Estimate dU/dscores from ``num_samples`` rankings a query; compiled where the reward allows, by the reference elsewhere.

    The same generator state gives the same result, whatever the number of threads.
    """
    check_scores(scores, mask)
    check_control(control, num_samples)
    terms = term_table(reward) if scores.device.type == "cpu" else None
    if terms is None:
        rankings = PlackettLuce(scores, mask).sample(num_samples, cutoff=reward.cutoff, generator=generator)
        return reinforce_of_rankings(scores, labels, mask, rankings=rankings, reward=reward, control=control)

    from rankpolicy.kernels.plackett_luce.reinforce import reinforce_queries

    reward.check_labels(labels)
    seed = int(torch.randint(2**62, (), generator=generator))
    gradient, utility, _ = reinforce_queries(
        scores.detach().numpy(),
        labels.numpy(),
        mask.numpy(),
        terms=terms,
        conventions=reward.conventions,
        num_samples=num_samples,
        control=control,
        seed=seed,
    )
    return GradientEstimate(torch.from_numpy(gradient).to(scores.dtype), torch.from_numpy(utility).to(scores.dtype))


def reinforce_of_rankings(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    rankings: Tensor,  # (sample, query, position), the first positions at least
    reward: Reward,
    control: str = "leave_one_out",
) -> GradientEstimate:
    """The reference: the estimate that these sampled rankings give."""
    check_control(control, len(rankings))
    policy = PlackettLuce(scores.detach(), mask)
    rewards = reward(rankings, labels, mask).to(scores.dtype)
    greedy_reward = reward(policy.mode()[..., : rankings.shape[-1]], labels, mask).to(scores.dtype)
    advantages = CONTROLS[control](rewards, greedy_reward)
    score_gradients = log_prob_gradient(policy.scores, mask, rankings)
    return GradientEstimate((advantages[..., None] * score_gradients).mean(0), rewards.mean(0))


def log_prob_gradient(scores: Tensor, mask: Tensor, rankings: Tensor) -> Tensor:
    """dlog P(ranking)/dscores (..., query, item), of the positions that ``rankings`` holds.

    >>> log_prob_gradient(torch.zeros(1, 3), torch.ones(1, 3, dtype=torch.bool), torch.tensor([[0, 1, 2]]))
    tensor([[ 0.6667,  0.1667, -0.8333]])
    """
    _, is_item = ranked_log_weights(scores, mask, rankings)
    log_remaining = log_remaining_weights(scores, mask, rankings)
    # log sum_{p' <= p} 1/Z_p'; padding adds nothing.
    log_inverse = (-log_remaining).masked_fill(~is_item, torch.finfo(scores.dtype).min / 4).logcumsumexp(-1)
    shape = (*rankings.shape[:-1], scores.shape[-1])
    # An item that was not placed takes part in every step.
    up_to_rank = log_inverse[..., -1:].expand(shape).scatter(-1, rankings, log_inverse)
    placed = torch.zeros(shape, dtype=scores.dtype, device=scores.device).scatter(-1, rankings, 1.0)
    return torch.where(mask, placed - (scores + up_to_rank).exp(), 0.0)
