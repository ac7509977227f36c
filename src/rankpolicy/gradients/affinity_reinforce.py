"""REINFORCE for the affinity policy of BanditRank, in closed form and for any reward.

    dU/ds_i = E[(R - control) * dlog P/ds_i]
    dlog P/ds_i = (1 - a_i) * (w_{rank(i)} - a_i * sum_{p <= min(rank(i), M)} w_p / A_p),    w_p = (1 - ε) a_{r(p)} / (A_p * P_p)

with a = sigmoid(s) the affinities, A_p those of the items not placed before position p summed, P_p the probability of the choice there and
w_p the share of it that depends on affinities (Gampa & Fujita 2019, eq. 8); w is 0 for items past position M. Where the reward looks at the
first c < M positions only, so does log P: the same expectation with less variance.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rankpolicy.gradients.controls import CONTROLS, check_control
from rankpolicy.gradients.estimate import GradientEstimate
from rankpolicy.metrics import RewardExpression, term_table
from rankpolicy.policies.affinity import Affinity
from rankpolicy.types import Reward


def affinity_reinforce(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    reward: Reward,
    num_samples: int = 30,
    max_positions: int | None = None,
    epsilon: float | Tensor = 0.1,
    control: str = "greedy",
    generator: torch.Generator | None = None,
) -> GradientEstimate:
    """Estimate dU/dscores from ``num_samples`` lists a query; compiled where the reward allows, by the reference elsewhere.

    The same generator state gives the same result, whatever the number of threads.
    """
    policy = Affinity(scores.detach(), mask, epsilon, max_positions)
    check_control(control, num_samples)
    terms = term_table(reward)
    if terms is not None and scores.device.type != "cpu":
        # Scores are few numbers: the way to the kernel and back takes less than the many small steps of the reference on a GPU.
        there = epsilon.cpu() if isinstance(epsilon, Tensor) else epsilon
        return affinity_reinforce(
            scores.detach().cpu(),
            labels.cpu(),
            mask.cpu(),
            reward=reward,
            num_samples=num_samples,
            max_positions=max_positions,
            epsilon=there,
            control=control,
            generator=generator,
        ).to(scores.device)
    if terms is None or not isinstance(reward, RewardExpression):
        rankings = policy.sample(num_samples, cutoff=reward.cutoff, generator=generator)
        return affinity_reinforce_of_rankings(policy, labels, rankings=rankings, reward=reward, control=control)

    from rankpolicy.kernels.plackett_luce.affinity import affinity_queries

    reward.check_labels(labels)
    seed = int(torch.randint(2**62, (), generator=generator))
    gradient, values, _ = affinity_queries(
        policy.scores.numpy(),
        labels.numpy(),
        mask.numpy(),
        epsilons=np.broadcast_to(np.asarray(epsilon), len(scores)),
        terms=terms,
        conventions=reward.conventions,
        max_positions=max_positions,
        num_samples=num_samples,
        control=control,
        seed=seed,
    )
    by_leaf = {
        term.factors[0]: torch.from_numpy(values[:, index]).to(scores.dtype) for index, term in enumerate(reward.terms)
    }
    return GradientEstimate(
        torch.from_numpy(gradient).to(scores.dtype),
        reward.combine(by_leaf),
        {str(leaf): value for leaf, value in by_leaf.items()},
    )


def affinity_reinforce_of_rankings(
    policy: Affinity,
    labels: Tensor,
    *,
    rankings: Tensor,  # (sample, query, position), the first positions at least
    reward: Reward,
    control: str = "greedy",
) -> GradientEstimate:
    """The reference: the estimate that these sampled lists give."""
    check_control(control, len(rankings))
    scores, mask = policy.scores, policy.mask
    values = {}
    if isinstance(reward, RewardExpression):
        values = {leaf: reward.leaf_values(leaf, rankings, labels, mask).to(scores.dtype) for leaf in reward.leaves}
        rewards = reward.combine(values)
    else:
        rewards = reward(rankings, labels, mask).to(scores.dtype)
    greedy_reward = reward(policy.mode()[..., : rankings.shape[-1]], labels, mask).to(scores.dtype)
    # An empty query left out of means has the reward NaN, and nothing to teach.
    advantages = CONTROLS[control](rewards, greedy_reward).nan_to_num(nan=0.0)
    gradient = (advantages[..., None] * affinity_log_prob_gradient(policy, rankings)).mean(0)
    return GradientEstimate(gradient, rewards.mean(0), {str(leaf): value.mean(0) for leaf, value in values.items()})


def affinity_log_prob_gradient(policy: Affinity, rankings: Tensor) -> Tensor:
    """dlog P(ranking)/dscores (..., query, item), of the positions that ``rankings`` holds.

    Of three items with affinity 1/2, chosen by affinity only, half of what it is for Plackett-Luce with equal weights:

    >>> policy = Affinity(torch.zeros(1, 3), torch.ones(1, 3, dtype=torch.bool), epsilon=0.0)
    >>> affinity_log_prob_gradient(policy, torch.tensor([[0, 1, 2]]))
    tensor([[ 0.3333,  0.0833, -0.4167]])
    """
    scores, mask = policy.scores, policy.mask
    log_choice, by_affinity, log_left, is_item = policy.choices(rankings)
    # Finite, not -inf: sums of vanishing shares stay numbers.
    nothing = torch.finfo(scores.dtype).min / 4
    log_share = torch.where(is_item, by_affinity - log_choice, nothing).clamp(min=nothing)
    log_inverse = torch.where(is_item, log_share - log_left, nothing).logcumsumexp(-1)
    shape = (*rankings.shape[:-1], scores.shape[-1])
    # An item that was not placed takes part in every choice.
    up_to_rank = log_inverse[..., -1:].expand(shape).scatter(-1, rankings, log_inverse)
    shares = torch.zeros(shape, dtype=scores.dtype, device=scores.device).scatter(-1, rankings, log_share.exp())
    by_log_affinity = shares - (logsigmoid(scores) + up_to_rank).exp()
    return torch.where(mask, by_log_affinity * torch.sigmoid(-scores), 0.0)
