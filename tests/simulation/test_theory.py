import math

import numpy as np
import pytest

from rankpolicy.simulation import (
    abrupt_drift,
    cascade_bound,
    cascade_lower_bound_problem,
    cascade_user,
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


def test_proposition_1_by_hand():
    """Users who stop at the first click need no division by alpha = 0.8^7: 834 where Theorem 1 would say 3978."""
    problem = cascade_lower_bound_problem(16, 8, gap=0.15)
    exploration, log_log = np.log(N) + 3 * np.log(np.log(N)), np.log(np.log(N))
    expected = 8 * 0.15 * (1 + math.log(1 / 0.15)) / KL * exploration + 7 * 8 * log_log
    np.testing.assert_allclose(upper_bound(problem, N), expected)
    np.testing.assert_allclose(upper_bound(problem, N)[1], 834, atol=0.5)
    np.testing.assert_allclose(upper_bound(problem, N)[1] / 0.8**7, 3978, atol=0.5)
    always_satisfied = dcm_lower_bound_problem(16, 8, gap=0.15, termination=1.0)
    np.testing.assert_array_equal(upper_bound(always_satisfied, N), upper_bound(problem, N))


def test_proposition_1_holds_for_shorter_lists_and_sure_clicks():
    attraction = [0.1, 0.5, 0.3]
    first = cascade_bound(attraction, N, num_shown=1)
    kl = [p * math.log(p / 0.5) + (1 - p) * math.log((1 - p) / 0.5) for p in (0.3, 0.1)]
    costs = 0.2 * (1 + math.log(5)) / kl[0] + 0.4 * (1 + math.log(2.5)) / kl[1]
    log_log = np.log(np.log(N))
    np.testing.assert_allclose(first, costs * (np.log(N) + 3 * log_log) + 7 * log_log)
    # w_1 = 1 makes alpha 0, which only Theorems 1 and 2 divide by; kl(w, 1) is infinite, so that telling items apart costs nothing.
    sure = stationary(cascade_user([1.0, 0.2]), 1)
    np.testing.assert_allclose(upper_bound(sure, N), 7 * log_log)


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


@pytest.mark.parametrize(
    "problem",
    [dcm_lower_bound_problem(8, 2, gap=0.15, termination=0.5), cascade_lower_bound_problem(8, 4, gap=0.15)],
    ids=["dcm", "cascade"],
)
def test_regret_lies_between_the_bounds(problem):
    pytest.importorskip("numba")
    from rankpolicy.simulation import simulate

    regret = simulate(["dcm-kl-ucb"], problem, num_steps=20_000, num_runs=4).mean("dcm-kl-ucb")[-1]
    assert lower_bound(problem, [20_000])[0] < regret < upper_bound(problem, [20_000])[0]
