"""The readable reference of REINFORCE: the estimate that given rankings make, for Plackett-Luce and affinity policies.

Both place items one by one, with probability 1 - ε by weight w among those left and with probability ε by chance:

    dlog P/dlog w_i = share_{rank(i)} - w_i * sum_{p <= rank(i)} share_p / W_p,    share_p = (1 - ε) w_{r(p)} / (W_p * P_p)

with W_p the summed weights of the items not placed before position p, P_p the probability of the choice there and share_p the part of it
that depends on weights, 1 where ε = 0. Items past the last position have no share of their own and take part in every sum.
"""

from __future__ import annotations

from rankpolicy.arrays import (
    Array,
    alike,
    as_like,
    clip,
    detached,
    log_cumsum_exp,
    log_sigmoid,
    lowest,
    masked_fill,
    namespace,
    scatter,
    sigmoid,
    zeros,
)
from rankpolicy.gradients.estimate import CONTROLS, GradientEstimate, check_control, check_rewards
from rankpolicy.metrics import RewardExpression
from rankpolicy.policies.affinity import Affinity
from rankpolicy.policies.choices import sequential_choices
from rankpolicy.policies.plackett_luce import PlackettLuce
from rankpolicy.types import RankingPolicy, Reward


def reinforce_of_rankings(
    scores: Array,
    labels: Array,
    mask: Array,
    *,
    rankings: Array,
    reward: Reward,
    control: str = "leave_one_out",
) -> GradientEstimate:
    """The estimate that these rankings, sampled from the Plackett-Luce policy of the scores, give.

    Parameters
    ----------
    scores, labels, mask
        Padded batch (query, item).
    rankings
        (sample, query, position), with all positions that the reward looks at.
    reward
        What a ranking earns.
    control
        ``"leave_one_out"``, ``"mean"``, ``"greedy"`` or ``"none"``.
    """
    policy = PlackettLuce(detached(scores), mask)
    return _estimate(policy, log_prob_gradient(policy.scores, mask, rankings), labels, rankings, reward, control)


def affinity_reinforce_of_rankings(
    policy: Affinity, labels: Array, *, rankings: Array, reward: Reward, control: str = "greedy"
) -> GradientEstimate:
    """The estimate that these lists, sampled from the affinity policy, give.

    Parameters
    ----------
    policy
        The policy, whose scores (query, item) the gradient is for.
    labels
        (query, item).
    rankings
        (sample, query, position), with all positions that the reward looks at.
    reward
        What a list earns.
    control
        ``"leave_one_out"``, ``"mean"``, ``"greedy"`` or ``"none"``.
    """
    return _estimate(policy, affinity_log_prob_gradient(policy, rankings), labels, rankings, reward, control)


def log_prob_gradient(scores: Array, mask: Array, rankings: Array) -> Array:
    """dlog P(ranking)/dscores (..., query, item) of a Plackett-Luce policy, for the positions that ``rankings`` holds.

    Parameters
    ----------
    scores, mask
        Padded batch (query, item).
    rankings
        Whole rankings or their first positions (..., query, position).

    >>> import numpy as np
    >>> log_prob_gradient(np.zeros((1, 3)), np.ones((1, 3), bool), np.array([[0, 1, 2]])).round(4)
    array([[ 0.6667,  0.1667, -0.8333]])
    """
    scores, mask, rankings = alike(scores, mask, rankings)
    return _log_weight_gradient(scores, mask, rankings, epsilon=0.0)


def affinity_log_prob_gradient(policy: Affinity, rankings: Array) -> Array:
    """dlog P(ranking)/dscores (..., query, item) of an affinity policy, for the positions that ``rankings`` holds.

    Parameters
    ----------
    policy
        The policy.
    rankings
        Lists or their first positions (..., query, position).

    With ε = 0 and three affinities of 1/2 it is half of Plackett-Luce's with equal weights:

    >>> import numpy as np
    >>> policy = Affinity(np.zeros((1, 3)), np.ones((1, 3), bool), epsilon=0.0)
    >>> affinity_log_prob_gradient(policy, np.array([[0, 1, 2]])).round(4)
    array([[ 0.3333,  0.0833, -0.4167]])
    """
    by_log_affinity = _log_weight_gradient(log_sigmoid(policy.scores), policy.mask, rankings, epsilon=policy.epsilon)
    return by_log_affinity * sigmoid(-policy.scores)


def _log_weight_gradient(log_weights: Array, mask: Array, rankings: Array, *, epsilon: float | Array) -> Array:
    """dlog P/dlog w (..., query, item)."""
    choices = sequential_choices(log_weights, mask, rankings, epsilon=epsilon)
    # Finite, not -inf: sums of vanishing shares stay numbers.
    xp, nothing = namespace(log_weights), lowest(log_weights)
    log_share = clip(xp.where(choices.is_item, choices.log_by_weight - choices.log_prob, nothing), nothing)
    log_inverse = log_cumsum_exp(xp.where(choices.is_item, log_share - choices.log_remaining, nothing))
    # An item that was not placed takes part in every choice.
    shape = (*rankings.shape[:-1], log_weights.shape[-1])
    up_to_rank = scatter(xp.broadcast_to(log_inverse[..., -1:], shape), rankings, log_inverse)
    shares = scatter(zeros(shape[-1:], like=log_weights), rankings, xp.exp(log_share))
    return xp.where(mask, shares - xp.exp(log_weights + up_to_rank), 0.0)


def _estimate(
    policy: RankingPolicy, gradients: Array, labels: Array, rankings: Array, reward: Reward, control: str
) -> GradientEstimate:
    """The mean over samples of advantage times dlog P/dscores (sample, query, item)."""
    check_control(control, len(rankings))
    mask = policy.mask
    _, labels, rankings = alike(gradients, labels, rankings)
    metrics: dict[str, Array] = {}
    if isinstance(reward, RewardExpression):
        values = {leaf: as_like(reward.leaf_values(leaf, rankings, labels, mask), gradients) for leaf in reward.leaves}
        rewards = reward.combine(values)
        metrics = {str(leaf): value.mean(0) for leaf, value in values.items()}
    else:
        rewards = as_like(reward(rankings, labels, mask), gradients)
        check_rewards(reward, rewards)
    greedy_reward = as_like(reward(policy.mode()[..., : rankings.shape[-1]], labels, mask), gradients)
    # A query that is left out of means has the reward NaN, and nothing to learn from.
    advantages = CONTROLS[control].advantages(rewards, greedy_reward)
    advantages = masked_fill(advantages, advantages != advantages, 0.0)
    return GradientEstimate((advantages[..., None] * gradients).mean(0), rewards.mean(0), metrics)
