import math

import numpy as np
import pytest

from rankpolicy.bandits import kl_ucb
from rankpolicy.types import RankPolicyError


def bisection(means, divergences):
    """The definition: the largest q with kl(mean, q) <= divergence."""
    low, high = means.copy(), np.ones_like(means)
    for _ in range(70):
        q = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            kl = np.where(means > 0, means * np.log(means / q), 0) + np.where(
                means < 1, (1 - means) * np.log((1 - means) / (1 - q)), 0
            )
        inside = kl <= divergences
        low, high = np.where(inside, q, low), np.where(inside, high, q)
    return low


def test_agrees_with_bisection():
    generator = np.random.default_rng(0)
    observations = np.exp(generator.uniform(0, math.log(1e6), 20_000)).round()
    means = generator.binomial(observations.astype(int), generator.random(20_000) ** 3) / observations
    divergences = generator.uniform(0, 20, 20_000) / observations
    assert np.abs(kl_ucb(means, divergences) - bisection(means, divergences)).max() < 1e-9


def test_extremes_stay_between_mean_and_one():
    means, divergences = np.meshgrid(
        [0, 1e-300, 1e-12, 1e-6, 0.5, 1 - 1e-9, 1 - 1e-16, 1], [0, 1e-300, 1e-16, 1e-3, 1, 50, 800]
    )
    indices = kl_ucb(means, divergences)
    assert indices.shape == means.shape
    assert (indices >= means).all()
    assert (indices <= 1).all()
    np.testing.assert_array_equal(indices[0], means[0])


def test_bad_input_is_refused():
    for means, divergences in (([1.1], [1.0]), ([0.5], [-1.0]), ([np.nan], [1.0]), ([0.5], [np.nan])):
        with pytest.raises(RankPolicyError, match="from 0 to 1"):
            kl_ucb(means, divergences)
