"""Sampled gradients that integrate each item's own noise: the variance is tens to thousands of times lower than from rankings alone.

Given the *other* items' noisy scores w_1 >= w_2 >= ... (of j_1, j_2, ...), item i beats w_k with probability 1 - exp(-e^{s_i - w_k}):

    dU/ds_i = E Σ_k (R(i at rank k) - R(i at rank k + 1)) g(w_k - s_i),    g(x) = exp(-x - e^{-x})

For the rewards of gradients/cascade.py the difference is (θ_k - θ_{k+1}) c_k (ρ_i - ρ_{j_k}), c_k the factor that the others above leave.
One sort serves all items: taking item i out moves those below it up by one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.gradients.cascade import RewardCascade, cascade_form
from rankpolicy.gradients.controls import check_control
from rankpolicy.gradients.estimate import GradientEstimate, draw_seed, draw_seed_on
from rankpolicy.kernels import HAS_NUMBA, on_gpu
from rankpolicy.metrics import rank_by_score, ranks_of
from rankpolicy.policies.choices import add_gumbel_noise
from rankpolicy.policies.plackett_luce import checked_scores
from rankpolicy.types import Reward

_LARGEST_LOG = 30.0  # exp(-e^30) is 0


def gumbel(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    reward: Reward,
    num_samples: int = 32,
    control: str = "none",
    generator: torch.Generator | None = None,
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
        Source of randomness; by default torch's own.
    """
    scores, mask = checked_scores(scores, mask)
    check_control("none", num_samples)
    form = cascade_form(reward, labels, mask)
    if on_gpu(scores) and _fits(scores, form):
        return _gumbel_on_gpu(scores, mask, form, num_samples=num_samples, generator=generator)
    if scores.device.type != "cpu" or not HAS_NUMBA:
        rankings, noisy_scores = sample_noisy_scores(
            scores, mask, num_samples=num_samples, cutoff=form.slopes.shape[-1] + 1, generator=generator
        )
        return gumbel_of_draws(scores, labels, mask, rankings=rankings, noisy_scores=noisy_scores, reward=reward)

    from rankpolicy.kernels.plackett_luce.gumbel import Cascade, gumbel_queries

    result = gumbel_queries(
        scores.detach().numpy(),
        mask.numpy(),
        Cascade(*(array.contiguous().numpy() for array in form[:4])),
        num_swaps=form.slopes.shape[-1],
        num_samples=num_samples,
        seed=draw_seed(generator),
    )
    utility = torch.from_numpy(result.utility) + form.constant
    return GradientEstimate(torch.from_numpy(result.gradient).to(scores.dtype), utility.to(scores.dtype))


def _fits(scores: Tensor, form: RewardCascade) -> bool:
    """Whether the GPU kernel can sort this many items and positions."""
    from rankpolicy.kernels.triton.reinforce import MOST_ITEMS, MOST_POSITIONS

    return 0 < scores.shape[-1] <= MOST_ITEMS and form.slopes.shape[-1] < MOST_POSITIONS


def _gumbel_on_gpu(
    scores: Tensor, mask: Tensor, form: RewardCascade, *, num_samples: int, generator: torch.Generator | None
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
    return GradientEstimate(result.gradient.to(scores.dtype), (result.utility + form.constant).to(scores.dtype))


def gumbel_of_draws(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    rankings: Tensor,
    noisy_scores: Tensor,
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
    exact_scores = scores.detach().double()
    shape = (*rankings.shape[:-1], scores.shape[-1])
    ranks = ranks_of(rankings, scores.shape[-1])
    gradient, utility = torch.zeros(shape, dtype=torch.float64, device=scores.device), form.constant
    slopes = form.slopes
    for term in range(len(slopes)):
        values, keep, add = (array[term].expand(shape) for array in (form.item_values, form.keep, form.add))
        ranked_values, ranked_keep, ranked_add = (array.gather(-1, rankings) for array in (values, keep, add))
        factor = torch.ones(shape, dtype=torch.float64, device=scores.device)  # c of the others
        for k in range(slopes.shape[-1]):
            position = k + (ranks <= k + 1).long()  # of the k-th of the others
            swapped = slopes[term, k] * factor * (values - ranked_values.gather(-1, position))
            gradient += swapped * _density(exact_scores - noisy_scores.gather(-1, position))
            factor = ranked_keep.gather(-1, position) * factor + ranked_add.gather(-1, position)
        factor = torch.ones(shape[:-1], dtype=torch.float64, device=scores.device)  # c of the ranking itself
        for k in range(rankings.shape[-1]):
            utility = utility + (form.rank_weights[term, k] * factor * ranked_values[..., k]).mean(0)
            factor = ranked_keep[..., k] * factor + ranked_add[..., k]
    return GradientEstimate(torch.where(mask, gradient.mean(0), 0.0).to(scores.dtype), utility.to(scores.dtype))


def gumbel_exposure(
    scores: Tensor,
    mask: Tensor,
    rank_weights: Tensor,
    *,
    num_samples: int = 32,
    generator: torch.Generator | None = None,
) -> Tensor:
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
        Source of randomness; by default torch's own.

    Whatever the noise, each item of two gets at least the weight of the last rank:

    >>> gumbel_exposure(torch.tensor([[60.0, 0.0]]), torch.ones(1, 2, dtype=torch.bool), torch.tensor([1.0, 0.5]))
    tensor([[1.0000, 0.5000]])
    """
    scores, mask = checked_scores(scores, mask)
    check_control("none", num_samples)
    missing = max(0, scores.shape[-1] - len(rank_weights))
    weights = torch.nn.functional.pad(rank_weights.double(), (0, missing))[: scores.shape[-1]].to(scores.device)
    slopes = weights[:-1] - weights[1:]
    num_swaps = int(slopes.nonzero().max()) + 1 if slopes.any() else 0
    if scores.device.type == "cpu" and HAS_NUMBA:
        from rankpolicy.kernels.plackett_luce.gumbel import gumbel_exposures

        exposure, _ = gumbel_exposures(
            scores.detach().numpy(),
            mask.numpy(),
            weights.numpy(),
            num_swaps=num_swaps,
            num_samples=num_samples,
            seed=draw_seed(generator),
        )
        return torch.from_numpy(exposure).to(scores.dtype)
    rankings, noisy_scores = sample_noisy_scores(
        scores, mask, num_samples=num_samples, cutoff=num_swaps + 1, generator=generator
    )
    return gumbel_exposure_of_draws(scores, mask, weights, rankings=rankings, noisy_scores=noisy_scores)


def gumbel_exposure_of_draws(
    scores: Tensor, mask: Tensor, rank_weights: Tensor, *, rankings: Tensor, noisy_scores: Tensor
) -> Tensor:
    """The readable reference of ``gumbel_exposure``; padded items have a noisy score of -inf, so every item beats them."""
    ranks = ranks_of(rankings, scores.shape[-1])
    exposure = rank_weights[-1].expand(ranks.shape)
    for k in range(min(rankings.shape[-1], scores.shape[-1] - 1)):
        if rank_weights[k] != rank_weights[k + 1]:
            rival_scores = noisy_scores.gather(-1, k + (ranks <= k + 1).long())
            above = -torch.expm1(-(scores.double() - rival_scores).clamp(max=_LARGEST_LOG).exp())
            exposure = exposure + (rank_weights[k] - rank_weights[k + 1]) * above
    return torch.where(mask, exposure.mean(0), 0.0).to(scores.dtype)


def sample_noisy_scores(
    scores: Tensor, mask: Tensor, *, num_samples: int, cutoff: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """The first ``cutoff`` positions of sampled rankings, and the scores with Gumbel noise that put items there; -inf for padding."""
    noisy = add_gumbel_noise(scores, num_samples=num_samples, generator=generator).masked_fill(~mask, -torch.inf)
    rankings = rank_by_score(noisy, mask)[..., :cutoff]
    return rankings, noisy.gather(-1, rankings)


def _density(log_rate_time: Tensor) -> Tensor:
    """g(x) for -x = log_rate_time."""
    log_rate_time = log_rate_time.clamp(max=_LARGEST_LOG)
    return (log_rate_time - log_rate_time.exp()).exp()
