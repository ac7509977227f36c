"""The compiled race: against its reference where scores lie far apart, and the part that computes exposure alone."""

import numpy as np
import pytest
import torch

from rankpolicy.kernels.plackett_luce.race import exposure, race
from rankpolicy.policies.race import COARSE, FINE, Quadrature, race_exposure


def batch(num_items, spread, cutoff=None):
    generator = np.random.default_rng(num_items)
    scores, coefficients = spread * generator.normal(size=(6, num_items)), generator.normal(size=(6, num_items))
    mask = generator.random(scores.shape) < 0.8
    mask[:, 0] = True
    weights = 1 / np.log2(2 + np.arange(num_items))
    weights[cutoff or num_items :] = 0
    return scores, mask, weights, coefficients


@pytest.mark.parametrize("cutoff", [None, 1, 3])
@pytest.mark.parametrize("spread", [0.1, 5.0, 30.0, 1e4])
@pytest.mark.parametrize(("quadrature", "tolerance"), [(FINE, 1e-9), (COARSE, 2e-3)])
def test_items_that_arrive_long_before_or_after_the_others(spread, cutoff, quadrature: Quadrature, tolerance):
    scores, mask, weights, coefficients = batch(12, spread, cutoff)
    found = race(scores, mask, weights, coefficients, quadrature=quadrature)
    leaf = torch.from_numpy(scores).requires_grad_()
    expected = race_exposure(leaf, torch.from_numpy(mask), torch.from_numpy(weights))
    (slope,) = torch.autograd.grad((expected * torch.from_numpy(coefficients)).sum(), leaf)
    np.testing.assert_allclose(found.exposure, expected.detach().numpy(), rtol=0, atol=tolerance)
    np.testing.assert_allclose(found.gradient, slope.numpy(), rtol=0, atol=tolerance)


@pytest.mark.parametrize("spread", [0.1, 5.0, 1e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exposure_alone_is_that_of_the_race(spread, dtype):
    scores, mask, weights, coefficients = (
        array.astype(dtype) if array.dtype == np.float64 else array for array in batch(15, spread)
    )
    whole = race(scores, mask, weights, coefficients, quadrature=COARSE)
    alone = exposure(scores, mask, weights, quadrature=COARSE)
    assert alone.dtype == dtype
    np.testing.assert_allclose(alone, whole.exposure, rtol=0, atol=1e-6)
