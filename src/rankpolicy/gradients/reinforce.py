"""REINFORCE for Plackett-Luce policies, in closed form and for any reward.

    dU/ds_i = E[(R - control) * dlog P/ds_i],    dlog P/ds_i = 1[rank(i) <= c] - sum_{p <= min(rank(i), c)} exp(s_i) / Z_p

with Z_p the summed exp(score) of the items not placed before position p (Williams 1992; Singh & Joachims 2019, eq. 6). Where the reward
looks at the first c positions only, so does log P: the same expectation with less variance.

Plackett-Luce is the policy of gradients/affinity_reinforce.py with log weights s and ε = 0; one kernel serves both.
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
    namespace,
    on_host,
    random_seed,
    to_numpy,
)
from rankpolicy.gradients.estimate import CONTROLS, GradientEstimate, check_control, draw_seed_on
from rankpolicy.gradients.reinforce_reference import reinforce_of_rankings
from rankpolicy.kernels import on_gpu
from rankpolicy.metrics import RewardExpression, term_table
from rankpolicy.metrics.expression import TermTable
from rankpolicy.policies.plackett_luce import PlackettLuce, checked_scores
from rankpolicy.types import Reward


def reinforce(
    scores: Array,
    labels: Array,
    mask: Array,
    *,
    reward: Reward,
    num_samples: int = 32,
    control: str = "leave_one_out",
    generator: Generator | None = None,
) -> GradientEstimate:
    """Estimate dU/dscores from sampled rankings; compiled where the reward allows, by the torch reference elsewhere.

    Equal generator states give equal results, whatever the number of threads.

    Parameters
    ----------
    scores, labels, mask
        Padded batch (query, item); the mask is True at real items.
    reward
        What a ranking earns: ``parse_metric("ndcg@10")``, a mix of metrics, or a function (``as_reward``).
    num_samples
        Rankings drawn per query. More samples, less noise; 10 to 50 is usual.
    control
        What is subtracted from rewards to lower the variance: ``"leave_one_out"``, ``"mean"``, ``"greedy"`` or ``"none"``.
    generator
        Source of randomness: a ``torch.Generator`` for tensors, a ``numpy.random.Generator`` for arrays; by default an unseeded one.
    """
    scores, mask = checked_scores(scores, mask)
    _, labels = alike(scores, labels)
    check_control(control, num_samples)
    is_on_gpu = on_gpu(scores)
    terms = term_table(reward) if is_on_gpu or on_host(scores) else None
    if is_on_gpu and terms is not None and isinstance(reward, RewardExpression) and _fits(scores, terms):
        return _reinforce_on_gpu(
            scores,
            labels,
            mask,
            reward=reward,
            terms=terms,
            num_samples=num_samples,
            control=control,
            generator=generator,
        )
    if is_on_gpu or terms is None or not isinstance(reward, RewardExpression):
        rankings = PlackettLuce(scores, mask).sample(num_samples, cutoff=reward.cutoff, generator=generator)
        return reinforce_of_rankings(scores, labels, mask, rankings=rankings, reward=reward, control=control)
    log_weights = as_double(detached(scores))
    gradient, utility, metrics = compiled_reinforce(
        log_weights,
        log_weights,
        labels,
        mask,
        epsilons=namespace(log_weights).zeros_like(log_weights[:, 0]),
        reward=reward,
        terms=terms,
        num_samples=num_samples,
        control=control,
        generator=generator,
    )
    return GradientEstimate(as_like(gradient, scores), as_like(utility, scores), metrics)


def _fits(scores: Array, terms: TermTable) -> bool:
    """Whether the GPU kernel can rank this many items."""
    from rankpolicy.kernels.triton.reinforce import MOST_ITEMS, MOST_POSITIONS

    num_items = scores.shape[-1]
    return num_items <= MOST_ITEMS and min(num_items, int(terms.cutoffs.max())) <= MOST_POSITIONS


def _reinforce_on_gpu(
    scores: Array,
    labels: Array,
    mask: Array,
    *,
    reward: RewardExpression,
    terms: TermTable,
    num_samples: int,
    control: str,
    generator: Generator | None,
) -> GradientEstimate:
    from rankpolicy.kernels.triton import reinforce as on_device

    reward.check_labels(labels)
    result = on_device.reinforce(
        scores, labels, mask, terms=terms, conventions=reward.conventions, num_samples=num_samples,
        control=CONTROLS[control].code, seed=draw_seed_on(scores.device, generator),
    )  # fmt: skip
    values = as_like(result.values, scores).unbind(-1)
    metrics = {str(term.factors[0]): value for term, value in zip(reward.terms, values, strict=True)}
    weighted = [term.weight * value for term, value in zip(reward.terms, values, strict=True)]
    return GradientEstimate(as_like(result.gradient, scores), namespace(scores).stack(weighted).sum(0), metrics)


def compiled_reinforce(
    log_weights: Array,
    scores: Array,
    labels: Array,
    mask: Array,
    *,
    epsilons: Array,
    reward: RewardExpression,
    terms: TermTable,
    num_samples: int,
    control: str,
    generator: Generator | None,
    max_positions: int | None = None,
) -> tuple[Array, Array, dict[str, Array]]:
    """dU/dlog weights (query, item), U (query,) and the mean of each metric (query,), for float64 arrays on the CPU."""
    from rankpolicy.kernels.metrics.values import metric_terms
    from rankpolicy.kernels.plackett_luce.reinforce import WeightedQueries, reinforce_queries

    reward.check_labels(labels)
    arrays = (log_weights, scores, as_double(labels), mask, epsilons)
    result = reinforce_queries(
        WeightedQueries(*(np.ascontiguousarray(to_numpy(array)) for array in arrays)),
        terms=metric_terms(*terms, conventions=reward.conventions, num_positions=scores.shape[-1]),
        max_positions=max_positions,
        num_samples=num_samples,
        control=CONTROLS[control].code,
        seed=random_seed(generator, like=scores),
    )
    metrics = {
        str(term.factors[0]): as_like(values, log_weights)
        for term, values in zip(reward.terms, result.values.T, strict=True)
    }
    return as_like(result.gradient, log_weights), as_like(result.values @ terms.weights, log_weights), metrics
