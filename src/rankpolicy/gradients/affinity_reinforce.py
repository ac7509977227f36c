"""REINFORCE for the affinity policy of BanditRank, in closed form and for any reward.

    dU/ds_i = E[(R - control) * dlog P/ds_i]
    dlog P/ds_i = (1 - a_i) * (w_{rank(i)} - a_i * sum_{p <= min(rank(i), M)} w_p / A_p),    w_p = (1 - ε) a_{r(p)} / (A_p * P_p)

with a = sigmoid(s) the affinities, A_p the summed affinities of the items not placed before position p, P_p the probability of the choice
there and w_p the share of it that depends on affinities (Gampa & Fujita 2019, eq. 8); w is 0 for items past position M. Where the reward
looks at the first c < M positions only, so does log P: the same expectation with less variance.
"""

from __future__ import annotations

import numpy as np

from rankpolicy.arrays import (
    Array,
    Generator,
    alike,
    as_double,
    as_like,
    detached,
    is_tensor,
    log_sigmoid,
    sigmoid,
    to_numpy,
)
from rankpolicy.gradients.estimate import GradientEstimate, check_control
from rankpolicy.gradients.reinforce import compiled_reinforce
from rankpolicy.gradients.reinforce_reference import affinity_reinforce_of_rankings
from rankpolicy.metrics import RewardExpression, term_table
from rankpolicy.policies.affinity import Affinity
from rankpolicy.types import Reward


def affinity_reinforce(
    scores: Array,
    labels: Array,
    mask: Array,
    *,
    reward: Reward,
    num_samples: int = 30,
    max_positions: int | None = None,
    epsilon: float | Array = 0.1,
    control: str = "greedy",
    generator: Generator | None = None,
) -> GradientEstimate:
    """Estimate dU/dscores from sampled lists; compiled where the reward allows, by the torch reference elsewhere.

    Equal generator states give equal results, whatever the number of threads.

    Parameters
    ----------
    scores, labels, mask
        Padded batch (query, item); the mask is True at real items.
    reward
        What a list earns: ``parse_metric("mean(ap, ndcg@10)")``, or a function (``as_reward``).
    num_samples
        Lists drawn per query. More samples, less noise; the paper draws 20 to 30.
    max_positions
        Length of the lists; by default they hold all items.
    epsilon
        Share of choices made by chance, 0 to 1, or one share per query (query,).
    control
        What is subtracted from rewards to lower the variance: ``"greedy"`` (the paper's), ``"leave_one_out"``, ``"mean"`` or ``"none"``.
    generator
        Source of randomness: a ``torch.Generator`` for tensors, a ``numpy.random.Generator`` for arrays; by default an unseeded one.
    """
    policy = Affinity(detached(scores), mask, epsilon, max_positions)
    scores, labels = alike(policy.scores, labels)
    check_control(control, num_samples)
    terms = term_table(reward)
    if terms is None or not isinstance(reward, RewardExpression):
        rankings = policy.sample(num_samples, cutoff=reward.cutoff, generator=generator)
        return affinity_reinforce_of_rankings(policy, labels, rankings=rankings, reward=reward, control=control)
    on_host = (array.cpu() if is_tensor(array) else array for array in (as_double(policy.scores), labels, policy.mask))
    own_scores, own_labels, own_mask = on_host
    epsilons = np.broadcast_to(to_numpy(epsilon).astype(np.float64), (len(scores),))
    gradient, utility, metrics = compiled_reinforce(
        log_sigmoid(own_scores),
        own_scores,
        own_labels,
        own_mask,
        epsilons=epsilons,
        reward=reward,
        terms=terms,
        max_positions=max_positions,
        num_samples=num_samples,
        control=control,
        generator=generator,
    )
    # dlog sigmoid(s) / ds = sigmoid(-s)
    return GradientEstimate(
        as_like(gradient * sigmoid(-own_scores), scores),
        as_like(utility, scores),
        {name: as_like(values, scores) for name, values in metrics.items()},
    )
