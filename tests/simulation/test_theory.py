import math

import numpy as np
import pytest

from rankpolicy.simulation import (
    abrupt_drift,
    dcm_lower_bound_problem,
    dcm_user,
    lower_bound,
    pbm_user,
    stationary,
    upper_bound,
)

KL = 0.05 * math.log(0.05 / 0.2) + 0.95 * math.log(0.95 / 0.8)
N = np.array([1e3, 1e5])


def test_theorem_1_by_hand():
    problem = dcm_lower_bound_problem(16, 4, gap=0.15, termination=0.5)
    alpha = 0.8**3
    exploration = np.log(N) + 3 * np.log(np.log(N))
    expected = 0.5 / alpha * (12 * 0.15 * (1 + math.log(1 / 0.15)) / KL * exploration + 7 * 4 * np.log(np.log(N)))
    np.testing.assert_allclose(upper_bound(problem, N), expected)


def test_theorem_2_by_hand():
    """Two positions, three items; each drop of v has its own sum over the items below that position."""
    problem = stationary(dcm_user([0.1, 0.5, 0.3], termination=[0.9, 0.4]), 2)

    def kl(p, q):
        return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))

    def cost(w, best):
        return (best - w) * (1 + math.log(1 / (best - w))) / kl(w, best)

    exploration, log_log = np.log(N) + 3 * np.log(np.log(N)), np.log(np.log(N))
    first = 0.5 / 0.5 * ((cost(0.3, 0.5) + cost(0.1, 0.5)) * exploration + 7 * log_log)
    second = 0.4 / 0.5 * (cost(0.1, 0.3) * exploration + 14 * log_log)
    np.testing.assert_allclose(upper_bound(problem, N), first + second)


def test_theorem_3_by_hand():
    problem = dcm_lower_bound_problem(16, 4, gap=0.15, termination=0.5)
    np.testing.assert_allclose(lower_bound(problem, N), 0.5 * 0.8**3 * 12 * 0.15 / KL * np.log(N))


def test_bounds_that_do_not_hold_are_not_given():
    problem = dcm_lower_bound_problem(6, 2, gap=0.15, termination=0.5)
    assert upper_bound(stationary(pbm_user([0.5, 0.2], [1.0, 0.5]), 2), N) is None
    assert upper_bound(abrupt_drift(problem, np.full(6, 0.1), at=5), N) is None
    rising = stationary(dcm_user([0.5, 0.2, 0.1], termination=[0.4, 0.9]), 2)
    assert upper_bound(rising, N) is None
    assert lower_bound(rising, N) is None
    assert upper_bound(stationary(dcm_user([1.0, 0.2], termination=[0.9, 0.4]), 2), N) is None


def test_regret_lies_between_the_bounds():
    pytest.importorskip("numba")
    from rankpolicy.simulation import simulate

    problem = dcm_lower_bound_problem(8, 2, gap=0.15, termination=0.5)
    regret = simulate(["dcm-kl-ucb"], problem, num_steps=20_000, num_runs=4).mean("dcm-kl-ucb")[-1]
    assert lower_bound(problem, [20_000])[0] < regret < upper_bound(problem, [20_000])[0]
