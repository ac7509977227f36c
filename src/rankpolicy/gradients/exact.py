"""The gradient without sampling, for rewards that are rank weights times item values.

U = Σ_i ρ_i exposure_i with exposure_i = E[θ_{rank(i)}], and the exposure of a Plackett-Luce policy can be integrated (policies/race.py).
The Jacobian of exposure is a symmetric graph Laplacian: for any Φ(exposure) with c_i = dΦ/dexposure_i,

    dΦ/ds_i = Σ_j W_ij (c_i - c_j),    W_ij >= 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from rankpolicy.arrays import Array, Generator, alike, as_like, detached, namespace, on_host, to_numpy
from rankpolicy.gradients.estimate import GradientEstimate, num_ranks
from rankpolicy.kernels import HAS_NUMBA, on_gpu
from rankpolicy.policies.plackett_luce import checked_scores
from rankpolicy.policies.race import COARSE, FINE, Quadrature, race_exposure
from rankpolicy.types import Reward

# Items x cutoff. Enough gumbel draws for an error of a tenth of the gradient took as long as the exact gradient at 120 items without
# cutoff (1 to 2 ms per query on one core), at most half as long at 300 without cutoff and at 5000 with cutoff 10, longer at 1000 with
# cutoff 10.
_MOST_EXACT_CELLS = 20_000


def takes_exact(reward: Reward, num_items: int) -> bool:
    """Whether the estimator ``auto`` takes the exact gradient for lists of this length."""
    return reward.is_additive and num_items * min(num_items, reward.cutoff or num_items) <= _MOST_EXACT_CELLS


def exact(
    scores: Array,
    labels: Array,
    mask: Array,
    *,
    reward: Reward,
    num_samples: int = 0,
    control: str = "none",
    generator: Generator | None = None,
) -> GradientEstimate:
    """dU/dscores by quadrature, without sampling.

    Largest error against the fine quadrature, relative to the largest element of a query's gradient, over 40 to 400 random queries: for
    scores of standard deviation up to 1 and cutoff 10, 1e-4 at 10 items, 9e-4 at 40 and 120, 1.4e-3 at 500 and 2000 (equal scores among
    them: 4e-4); without a cutoff below 1e-4. With standard deviation 3, up to 3e-3 at 10 items, where gradients vanish, and 1e-3 beyond.

    Parameters
    ----------
    scores, labels, mask
        Padded batch (query, item); the mask is True at real items.
    reward
        A weighted sum of DCG, NDCG, precision, recall, RBP and average rank.
    num_samples, control, generator
        Not used: nothing is drawn.
    """
    scores, mask = checked_scores(scores, mask)
    _, labels = alike(scores, labels)
    return exact_of_forms(scores, mask, reward.additive_forms(labels, mask), name=reward.name)


def exact_of_forms(scores: Array, mask: Array, forms: Sequence[tuple[Array, Array]], *, name: str) -> GradientEstimate:
    """dU/dscores by quadrature for a reward that is given as rank weights (position,) and item values (query, item).

    Parameters
    ----------
    scores, mask
        Padded batch (query, item).
    forms
        The terms of the reward.
    name
        The name of the reward.
    """
    if forms and not on_host(scores) and on_gpu(scores):
        terms = [_term_on_gpu(scores, mask, *form, name=name, term=term) for term, form in enumerate(forms)]
        gradient, utility = terms[0]
        for slope, value in terms[1:]:
            gradient, utility = gradient + slope, utility + value
        return GradientEstimate(gradient, utility)
    xp = namespace(scores)
    gradient, utility = xp.zeros_like(scores), xp.zeros_like(scores[:, 0])
    for rank_weights, item_values in forms:
        exposure, term_gradient = exposure_gradient(
            scores, mask, item_values, rank_weights=rank_weights, quadrature=COARSE
        )
        gradient += term_gradient
        utility += (item_values * exposure).sum(-1)
    return GradientEstimate(gradient, utility)


def _term_on_gpu(
    scores: Array, mask: Array, rank_weights: Array, item_values: Array, *, name: str, term: int
) -> tuple[Array, Array]:
    """Gradient (query, item) and value (query,) of one term."""
    from rankpolicy.kernels.triton.race import race

    weights = rank_weights[: max(1, num_ranks(rank_weights, of=(name, term)))]
    result = race(scores, mask, weights, item_values, quadrature=COARSE, up_to="gradient")
    return as_like(result.gradient, scores), as_like(result.total, scores)


def exposure_gradient(
    scores: Array, mask: Array, coefficients: Array, *, rank_weights: Array, quadrature: Quadrature = FINE
) -> tuple[Array, Array]:
    """Exposure E[θ_{rank(i)}] and dΦ/dscores for coefficients c = dΦ/dexposure, all (query, item).

    Parameters
    ----------
    scores, mask
        Padded batch (query, item).
    coefficients
        dΦ/dexposure (query, item).
    rank_weights
        Weight θ of each rank (position,), 0 past its end.
    quadrature
        Nodes of the integral: ``FINE`` for evaluation, ``COARSE`` for training (policies/race.py).

    >>> import numpy as np
    >>> mask, first = np.ones((1, 2), bool), np.array([1.0, 0.0])
    >>> exposure, gradient = exposure_gradient(np.zeros((1, 2)), mask, first[None], rank_weights=first)
    >>> exposure.round(4), gradient.round(4)
    (array([[0.5, 0.5]]), array([[ 0.25, -0.25]]))
    """
    scores, mask, coefficients, rank_weights = alike(scores, mask, coefficients, rank_weights)
    coefficients = as_like(coefficients, scores)
    if on_host(scores) and HAS_NUMBA:
        from rankpolicy.kernels.plackett_luce.race import race

        result = race(*map(to_numpy, (scores, mask, rank_weights, coefficients)), quadrature=quadrature)
        return as_like(result.exposure, scores), as_like(result.gradient, scores)
    if on_gpu(scores):
        from rankpolicy.kernels.triton.race import race as race_on_gpu

        on_device = race_on_gpu(scores, mask, rank_weights, coefficients, quadrature=quadrature, up_to="gradient")
        return as_like(on_device.exposure, scores), as_like(on_device.gradient, scores)
    import torch

    with torch.enable_grad():
        leaf = torch.as_tensor(detached(scores)).requires_grad_()
        value = race_exposure(leaf, torch.as_tensor(mask), torch.as_tensor(rank_weights), quadrature=quadrature)
        (slope,) = torch.autograd.grad((value * torch.as_tensor(coefficients)).sum(), leaf)
    return as_like(detached(value), scores), as_like(slope, scores)
