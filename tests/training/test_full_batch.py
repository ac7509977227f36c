"""Linear models that are trained on all queries at once, and the search that trains them."""

import numpy as np
import pytest

from rankpolicy.data import make_fair_synthetic
from rankpolicy.rankers import FairPGRank
from rankpolicy.rankers.fits import fit_together
from rankpolicy.training.lbfgs import lbfgs

TRAIN = make_fair_synthetic(20, 6, random_state=0)


def minimise(function, start, **options):
    search = lbfgs(np.array(start), **options)
    point, count = next(search), 0
    while True:
        count += 1
        try:
            point = search.send(function(point))
        except StopIteration as end:
            return end.value, count


def rosenbrock(x):
    value = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    return value, np.array([-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)])


def test_the_search_finds_the_minimum_of_a_curved_valley():
    found, count = minimise(rosenbrock, [-1.2, 1.0], max_iterations=200)
    np.testing.assert_allclose(found, [1.0, 1.0], atol=1e-6)
    assert count < 80


def test_the_search_goes_far_where_the_function_is_nearly_linear():
    found, count = minimise(lambda x: (float(np.logaddexp(0, -x[0])), -1 / (1 + np.exp(x))), [-50.0], max_iterations=50)
    assert found[0] > 10
    assert count < 40


def test_a_start_at_the_minimum_is_kept():
    found, count = minimise(lambda x: (float(x @ x), 2 * x), [0.0, 0.0], max_iterations=10)
    assert (found.tolist(), count) == ([0.0, 0.0], 1)


@pytest.mark.parametrize("num_networks", [1, 2])
def test_strengths_are_trained_together_as_alone(num_networks):
    def make():
        return [
            FairPGRank(strength=s, random_state=seed, epochs=15, num_networks=num_networks)
            for s, seed in ((0.0, 0), (5.0, 0), (50.0, 1))
        ]

    alone, together = make(), make()
    for ranker in alone:
        ranker.fit(TRAIN, progress=False)
    fit_together(together, [TRAIN] * 3, [None] * 3)
    for one, other in zip(alone, together, strict=True):
        assert other.report_["utility"] == pytest.approx(one.report_["utility"], abs=1e-6)
        assert other.report_["disparity"] == pytest.approx(one.report_["disparity"], abs=1e-6)
        assert other.best_iteration_ == one.best_iteration_


def test_bounds_and_strengths_can_be_fitted_together():
    rankers = [FairPGRank(max_disparity=0.02, epochs=20), FairPGRank(strength=1.0, epochs=20)]
    alone = FairPGRank(max_disparity=0.02, epochs=20).fit(TRAIN, progress=False)
    fit_together(rankers, [TRAIN] * 2, [None] * 2)
    assert rankers[0].report_["disparity"] == pytest.approx(alone.report_["disparity"], abs=1e-6)
