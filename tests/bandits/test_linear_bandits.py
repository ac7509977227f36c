"""Contextual bandits against ridge regression in numpy."""

import math
from functools import partial

import numpy as np
import pytest

from rankpolicy.bandits import Bandit, CascadeLinUCB, DcmKLUCB, DcmLinTS, DcmLinUCB, IndexBandit, LinUCB
from rankpolicy.simulation import linear_dcm_problem, simulate
from rankpolicy.types import RankPolicyError

FEATURES = np.random.default_rng(7).normal(size=(8, 3))


def fed(bandit, feedback, *, num_lists=60):
    """The bandit after random lists, and the inverse and b of its regression."""
    generator = np.random.default_rng(1)
    precision, b = np.eye(3) / bandit.prior_variance, np.zeros(3)
    for _ in range(num_lists):
        ranking, clicks = generator.permutation(8)[:4], (generator.random(4) < 0.3).astype(int)
        bandit.learn(ranking, clicks)
        clicked = np.flatnonzero(clicks)
        end = clicked[0 if feedback == "first" else -1] + 1 if len(clicked) else 4
        seen = FEATURES[ranking[:end]]
        precision += seen.T @ seen / bandit.noise**2
        b += clicks[:end] @ seen
    return bandit, np.linalg.inv(precision), b


@pytest.mark.parametrize(("bandit_class", "feedback"), [(DcmLinUCB, "last"), (CascadeLinUCB, "first")])
def test_the_posterior_is_ridge_regression_and_the_largest_bounds_are_shown(bandit_class, feedback):
    made = bandit_class(num_items=8, cutoff=4, features=FEATURES, noise=0.4, prior_variance=2.0, radius=1.5)
    bandit, covariance, b = fed(made, feedback)
    np.testing.assert_allclose(bandit.memory.statistics[0, :, 0], b, atol=1e-12)
    np.testing.assert_allclose(bandit.memory.statistics[0, :, 1:], covariance, atol=1e-12)
    bounds = FEATURES @ covariance @ b / 0.16
    bounds += 1.5 * np.sqrt(np.einsum("if,fg,ig->i", FEATURES, covariance, FEATURES))
    np.testing.assert_array_equal(bandit.rank(), np.argsort(-bounds)[:4])


def test_draws_are_from_the_posterior():
    """P(item 0 before item 1) = Phi(mean difference / its deviation)."""
    bandit = DcmLinTS(num_items=8, cutoff=1, features=FEATURES)
    for item in (0, 0, 1, 2):
        bandit.learn([item], [1])
    seen = FEATURES[[0, 0, 1, 2]]
    covariance = np.linalg.inv(np.eye(3) + 4 * seen.T @ seen)
    difference = FEATURES[0] - FEATURES[1]
    mean, deviation = difference @ covariance @ seen.sum(0) * 4, math.sqrt(difference @ covariance @ difference)
    expected = 0.5 * (1 + math.erf(mean / deviation / math.sqrt(2)))
    shown = np.mean([bandit.rank([0, 1])[0] == 0 for _ in range(4000)])
    assert 0.05 < expected < 0.95
    assert abs(shown - expected) < 4 * math.sqrt(expected * (1 - expected) / 4000)


def test_features_travel_and_grow():
    bandit = fed(DcmLinTS(num_items=8, cutoff=4, features=FEATURES), "last")[0]
    copy = Bandit.from_dict(bandit.to_dict())
    np.testing.assert_array_equal(copy.features, FEATURES)
    np.testing.assert_array_equal(copy.rank(), bandit.rank())
    known = bandit.memory.statistics.copy()
    np.testing.assert_array_equal(bandit.add_items(1, features=[[1.0, 2.0, 3.0]]), [8])
    np.testing.assert_array_equal(bandit.memory.features[8], [1.0, 2.0, 3.0])
    bandit.forget_items([0])
    np.testing.assert_array_equal(bandit.memory.statistics, known)
    bandit.set_features(np.ones((9, 3)))
    bandit.learn([4], [1])
    np.testing.assert_allclose(bandit.memory.statistics[0, :, 0], known[0, :, 0] + 1)


def test_an_index_with_features_keeps_a_copy_of_its_own():
    index = LinUCB(features=FEATURES, radius=0.3)
    bandit = IndexBandit(num_items=8, cutoff=4, index=index, feedback="first-click", best_last=True)
    named = CascadeLinUCB(num_items=8, cutoff=4, features=FEATURES, radius=0.3, best_last=True)
    for other in (bandit, named):
        other.learn([3, 1, 2], [0, 1, 1])
        other.add_items(1, features=[[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(bandit.rank(), named.rank())
    assert len(index.features) == 8
    copy = Bandit.from_dict(bandit.to_dict())
    np.testing.assert_array_equal(copy.memory.features, bandit.memory.features)
    with pytest.raises(RankPolicyError, match="lin-ucb or lin-ts; dcm-kl-ucb has none"):
        DcmKLUCB(num_items=8, cutoff=4).set_features(FEATURES)


def test_bad_features_are_refused():
    bandit = DcmLinTS(num_items=8, cutoff=4, features=FEATURES)
    for call, text in [
        (lambda: DcmLinTS(num_items=7, cutoff=4, features=FEATURES), r"each of 7 items; got shape \(8, 3\)"),
        (lambda: DcmLinTS(num_items=8, cutoff=4, features=np.full((8, 2), np.nan)), "finite"),
        (lambda: DcmLinTS(num_items=8, cutoff=4, features="tfidf"), "must be numbers"),
        (lambda: bandit.add_items(2), r"features \(2, 3\)"),
        (lambda: bandit.set_features(np.ones((8, 4))), "3 columns"),
        (lambda: DcmLinTS(num_items=8, cutoff=4).add_items(1, features=[[1.0]]), "only where all have"),
        (lambda: DcmLinTS(num_items=8, cutoff=4, noise=0.0), "noise"),
        (lambda: DcmLinUCB(num_items=8, cutoff=4, radius=-1.0), "radius"),
        (lambda: linear_dcm_problem(5, 1, 2, random_state=0), "2 features"),
    ]:
        with pytest.raises(RankPolicyError, match=text):
            call()
    assert bandit.num_items == 8


def test_features_pay():
    """Three times less regret than dcmKL-UCB with 300 items, which learns of each for itself; on every run."""
    pytest.importorskip("numba")
    problem, features = linear_dcm_problem(300, 5, 5, random_state=0)
    makers = {"with": partial(DcmLinTS, features=features), "without": DcmKLUCB}
    regrets = simulate(makers, problem, num_steps=3000, num_runs=5, steps=[3000], executor="serial").regrets
    assert (3 * regrets["with"] < regrets["without"]).all()
