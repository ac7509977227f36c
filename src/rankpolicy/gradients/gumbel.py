"""Sampled gradients that integrate each item's own noise: the variance is tens to thousands of times lower than from rankings alone.

Given the *other* items' noisy scores w_1 >= w_2 >= ... (of j_1, j_2, ...), item i beats w_k with probability 1 - exp(-e^{s_i - w_k}):

    dU/ds_i = E Σ_k (R(i at rank k) - R(i at rank k + 1)) g(w_k - s_i),    g(x) = exp(-x - e^{-x})

For the rewards of gradients/gumbel.py the difference is (θ_k - θ_{k+1}) c_k (ρ_i - ρ_{j_k}), c_k the factor that the others above leave.
One sort serves all items: taking item i out moves those below it up by one.

Rewards that a swap of neighbours changes in a simple way, which is what the gumbel estimator has to know about a reward.

    reward(r) = constant + Σ_terms Σ_k θ_k ρ_{r(k)} c_k,    c_1 = 1,    c_{k+1} = κ_{r(k)} c_k + α_{r(k)}

Each metric declares its own form (metrics/forms.py): additive metrics with κ = 1 and α = 0; AP, RR, ERR and success in their files. For
each of them, item i at rank k and j at rank k + 1 earn (θ_k - θ_{k+1}) c_k (ρ_i - ρ_j) more than the other way round.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankpolicy.arrays import (
    Array,
    Generator,
    alike,
    as_double,
    as_like,
    clip,
    detached,
    gather,
    masked_fill,
    namespace,
    on_host,
    random_seed,
    resized,
    to_numpy,
)
from rankpolicy.gradients.estimate import GradientEstimate, check_control, draw_seed_on, num_ranks
from rankpolicy.kernels import HAS_NUMBA, on_gpu
from rankpolicy.metrics import METRICS, RewardExpression, rank_by_score, ranks_of
from rankpolicy.metrics.ranked import judged_items
from rankpolicy.policies.choices import add_gumbel_noise
from rankpolicy.policies.plackett_luce import checked_scores
from rankpolicy.types import RankPolicyError, Reward


class RewardCascade(NamedTuple):
    """The arrays of the formula above; a query without relevant items has item values 0, since no gradient sees its constant."""

    rank_weights: Array  # (term, position) θ, 0 past the cutoff
    item_values: Array  # (term, query, item) ρ
    keep: Array  # (term, query, item) κ
    add: Array  # (term, query, item) α
    constant: Array  # (query,)
    slopes: Array  # (term, rank) θ_k - θ_{k+1}, cut after the last rank at which a swap matters


def cascade_form(reward: Reward, labels: Array, mask: Array) -> RewardCascade:
    """The form of a reward, in float64.

    >>> import numpy as np
    >>> from rankpolicy.metrics import all_items, parse_metric
    >>> form = cascade_form(parse_metric("rr@2"), np.array([[0.0, 1.0, 3.0]]), all_items(1, 3))
    >>> form.rank_weights.tolist(), form.item_values.tolist(), form.keep.tolist()
    ([[1.0, 0.5, 0.0]], [[[0.0, 1.0, 1.0]]], [[[1.0, 0.0, 0.0]]])
    """
    if not isinstance(reward, RewardExpression) or not reward.has_cascade:
        metrics = ", ".join(name for name, metric in METRICS.items() if metric.has_cascade)
        raise RankPolicyError(
            f"estimator='gumbel' needs a weighted sum of {metrics}; got {reward.name!r}.",
            python="Estimate its gradient by sampling whole rankings: estimator='reinforce'.",
            command_line="Estimate its gradient by sampling whole rankings: --set estimator=reinforce.",
        )
    labels, mask = alike(labels, mask)
    items, xp = judged_items(as_double(labels), mask), namespace(labels)
    forms = [
        METRICS[leaf.metric].cascade_form(
            items, cutoff=leaf.cutoff, conventions=reward.conventions, options=dict(leaf.options)
        )
        for term in reward.terms
        for leaf in term.factors
    ]
    weights = [term.weight for term in reward.terms]
    rank_weights = xp.stack([form.rank_weights for form in forms])
    slopes = rank_weights[:, :-1] - rank_weights[:, 1:]
    return RewardCascade(
        rank_weights=rank_weights,
        item_values=xp.stack([weight * form.item_values for weight, form in zip(weights, forms, strict=True)]),
        keep=xp.stack([form.keep for form in forms]),
        add=xp.stack([form.add for form in forms]),
        constant=xp.stack([weight * form.constant for weight, form in zip(weights, forms, strict=True)]).sum(0),
        slopes=slopes[:, : num_ranks(slopes, of=(reward.name, "slopes"))],
    )


_LARGEST_LOG = 30.0  # exp(-e^30) is 0


def gumbel(
    scores: Array,
    labels: Array,
    mask: Array,
    *,
    reward: Reward,
    num_samples: int = 32,
    control: str = "none",
    generator: Generator | None = None,
) -> GradientEstimate:
    """Estimate dU/dscores of a weighted sum of additive metrics, AP, RR, ERR and success.

    Equal generator states give equal results, whatever the number of threads.

    Parameters
    ----------
    scores, labels, mask
        Padded batch (query, item); the mask is True at real items.
    reward
        A weighted sum of these metrics.
    num_samples
        Draws per query. A few are enough: one errs less than 32 rankings of ``reinforce``.
    control
        Not used: this estimator needs no control variate.
    generator
        Source of randomness: a ``torch.Generator`` for tensors, a ``numpy.random.Generator`` for arrays; by default an unseeded one.
    """
    scores, mask = checked_scores(scores, mask)
    _, labels = alike(scores, labels)
    check_control("none", num_samples)
    form = cascade_form(reward, labels, mask)
    if on_gpu(scores) and _fits(scores, form):
        return _gumbel_on_gpu(scores, mask, form, num_samples=num_samples, generator=generator)
    if not on_host(scores) or not HAS_NUMBA:
        rankings, noisy_scores = sample_noisy_scores(
            scores, mask, num_samples=num_samples, cutoff=form.slopes.shape[-1] + 1, generator=generator
        )
        return gumbel_of_draws(scores, labels, mask, rankings=rankings, noisy_scores=noisy_scores, reward=reward)

    from rankpolicy.kernels.plackett_luce.gumbel import Cascade, gumbel_queries

    result = gumbel_queries(
        to_numpy(scores),
        to_numpy(mask),
        Cascade(*(np.ascontiguousarray(to_numpy(array)) for array in form[:4])),
        num_swaps=form.slopes.shape[-1],
        num_samples=num_samples,
        seed=random_seed(generator, like=scores),
    )
    utility = as_like(result.utility, form.constant) + form.constant
    return GradientEstimate(as_like(result.gradient, scores), as_like(utility, scores))


def _fits(scores: Array, form: RewardCascade) -> bool:
    """Whether the GPU kernel can sort this many items and positions."""
    from rankpolicy.kernels.triton.reinforce import MOST_ITEMS, MOST_POSITIONS

    return 0 < scores.shape[-1] <= MOST_ITEMS and form.slopes.shape[-1] < MOST_POSITIONS


def _gumbel_on_gpu(
    scores: Array, mask: Array, form: RewardCascade, *, num_samples: int, generator: Generator | None
) -> GradientEstimate:
    from rankpolicy.kernels.triton.gumbel import gumbel as on_device

    result = on_device(
        scores,
        mask,
        rank_weights=form.rank_weights,
        item_values=form.item_values,
        keep=form.keep,
        add=form.add,
        num_swaps=form.slopes.shape[-1],
        num_samples=num_samples,
        seed=draw_seed_on(scores.device, generator),
    )
    return GradientEstimate(as_like(result.gradient, scores), as_like(result.utility + form.constant, scores))


def gumbel_of_draws(
    scores: Array,
    labels: Array,
    mask: Array,
    *,
    rankings: Array,
    noisy_scores: Array,
    reward: Reward,
) -> GradientEstimate:
    """The estimate that these draws from the Plackett-Luce policy of the scores give.

    Parameters
    ----------
    scores, labels, mask
        Padded batch (query, item).
    rankings
        (sample, query, position), one position more than those at which a swap of neighbours changes the reward.
    noisy_scores
        Scores with Gumbel noise that put the items there, descending; -inf for padding.
    reward
        A weighted sum of additive metrics, AP, RR, ERR and success.
    """
    form = cascade_form(reward, labels, mask)
    xp, exact_scores = namespace(scores), as_double(detached(scores))
    ranks = ranks_of(rankings, scores.shape[-1])
    no_gradient = as_double(xp.zeros_like(ranks))
    gradient, utility = no_gradient, form.constant
    slopes = form.slopes
    for term in range(len(slopes)):
        values, keep, add = (array[term] for array in (form.item_values, form.keep, form.add))
        ranked_values, ranked_keep, ranked_add = (gather(array, rankings) for array in (values, keep, add))
        factor = no_gradient + 1  # c of the others
        for k in range(slopes.shape[-1]):
            position = k + (ranks <= k + 1)  # of the k-th of the others
            swapped = slopes[term, k] * factor * (values - gather(ranked_values, position))
            gradient = gradient + swapped * _density(exact_scores - gather(noisy_scores, position))
            factor = gather(ranked_keep, position) * factor + gather(ranked_add, position)
        factor = no_gradient[..., 0] + 1  # c of the ranking itself
        for k in range(rankings.shape[-1]):
            utility = utility + (form.rank_weights[term, k] * factor * ranked_values[..., k]).mean(0)
            factor = ranked_keep[..., k] * factor + ranked_add[..., k]
    return GradientEstimate(as_like(xp.where(mask, gradient.mean(0), 0.0), scores), as_like(utility, scores))


def gumbel_exposure(
    scores: Array,
    mask: Array,
    rank_weights: Array,
    *,
    num_samples: int = 32,
    generator: Generator | None = None,
) -> Array:
    """Sampled estimate of E[θ_{rank(i)}] (query, item): θ_n + E Σ_{k < n} (θ_k - θ_{k+1}) (1 - exp(-e^{s_i - w_k})).

    Parameters
    ----------
    scores, mask
        Padded batch (query, item).
    rank_weights
        Weight θ of each rank (position,), 0 past its end.
    num_samples
        Draws per query.
    generator
        Source of randomness: a ``torch.Generator`` for tensors, a ``numpy.random.Generator`` for arrays; by default an unseeded one.

    Whatever the noise, each item of two gets at least the weight of the last rank:

    >>> gumbel_exposure(np.array([[60.0, 0.0]]), np.ones((1, 2), bool), np.array([1.0, 0.5]))
    array([[1. , 0.5]])
    """
    scores, mask = checked_scores(scores, mask)
    check_control("none", num_samples)
    weights = resized(as_like(rank_weights, as_double(scores[0])), scores.shape[-1])
    slopes = weights[:-1] - weights[1:]
    num_swaps = int(namespace(slopes).nonzero(slopes)[0].max()) + 1 if slopes.any() else 0
    if on_host(scores) and HAS_NUMBA:
        from rankpolicy.kernels.plackett_luce.gumbel import gumbel_exposures

        exposure, _ = gumbel_exposures(
            *map(to_numpy, (scores, mask, weights)),
            num_swaps=num_swaps,
            num_samples=num_samples,
            seed=random_seed(generator, like=scores),
        )
        return as_like(exposure, scores)
    rankings, noisy_scores = sample_noisy_scores(
        scores, mask, num_samples=num_samples, cutoff=num_swaps + 1, generator=generator
    )
    return gumbel_exposure_of_draws(scores, mask, weights, rankings=rankings, noisy_scores=noisy_scores)


def gumbel_exposure_of_draws(
    scores: Array, mask: Array, rank_weights: Array, *, rankings: Array, noisy_scores: Array
) -> Array:
    """The readable reference of ``gumbel_exposure``; padded items have a noisy score of -inf, so every item beats them."""
    xp, ranks = namespace(scores), ranks_of(rankings, scores.shape[-1])
    exposure = xp.broadcast_to(rank_weights[-1], ranks.shape)
    for k in range(min(rankings.shape[-1], scores.shape[-1] - 1)):
        if rank_weights[k] != rank_weights[k + 1]:
            rival_scores = gather(noisy_scores, k + (ranks <= k + 1))
            above = -xp.expm1(-xp.exp(clip(as_double(scores) - rival_scores, high=_LARGEST_LOG)))
            exposure = exposure + (rank_weights[k] - rank_weights[k + 1]) * above
    return as_like(xp.where(mask, exposure.mean(0), 0.0), scores)


def sample_noisy_scores(
    scores: Array, mask: Array, *, num_samples: int, cutoff: int, generator: Generator | None = None
) -> tuple[Array, Array]:
    """The first ``cutoff`` positions of sampled rankings, and the scores with Gumbel noise that put items there; -inf for padding."""
    noisy = add_gumbel_noise(scores, num_samples=num_samples, generator=generator)
    noisy = masked_fill(noisy, ~mask, -math.inf)
    rankings = rank_by_score(noisy, mask)[..., :cutoff]
    return rankings, gather(noisy, rankings)


def _density(log_rate_time: Array) -> Array:
    """g(x) for -x = log_rate_time."""
    xp, log_rate_time = namespace(log_rate_time), clip(log_rate_time, high=_LARGEST_LOG)
    return xp.exp(log_rate_time - xp.exp(log_rate_time))
