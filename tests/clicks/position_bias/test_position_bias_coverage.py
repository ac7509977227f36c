"""Bootstrap intervals hold the truth as often as they say; benchmarks/position_bias.py measures it with 500 logs a method."""

import numpy as np
import pytest

from rankpolicy.clicks import estimate_position_bias, make_biased_log

PROPENSITIES = 1 / np.arange(1, 5)
RELEVANCE = np.random.default_rng(0).uniform(0.3, 0.9, (5, 4))
NUM_LOGS = 120


@pytest.mark.parametrize("method", ["pivot", "all-pairs"])
def test_coverage(method):
    """Ranks of one log are not independent: the tolerance is four standard errors of one rank's share, for the mean over ranks."""
    inside = []
    for seed in range(NUM_LOGS):
        made = make_biased_log(
            2000,
            propensities=PROPENSITIES,
            relevance=RELEVANCE,
            traffic="rankers",
            random_state=seed,
        )
        found = estimate_position_bias(made.log.collapsed(), method=method, num_resamples=100, random_state=seed)
        low, high = found.intervals[1:].T
        inside.append((low <= PROPENSITIES[1:]) & (PROPENSITIES[1:] <= high))
    assert abs(np.mean(inside) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / NUM_LOGS)
