import math
from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from rankpolicy import RankPolicyError
from rankpolicy.fairness import (
    birkhoff_decomposition,
    constrained_ranking,
    group_disparity,
    lp_post_processing,
    penalized_ranking,
)

CASES = [
    ([3.0, 1.0], [0, 1]),
    ([3.0, 2.9, 0.5], [0, 0, 1]),
    ([0.5, 3.0, 1.0, 1.2], [1, 0, 1, 0]),
    ([2.0, 2.0, 1.0, 3.0], [0, 1, 0, 1]),
    ([2.0, 2.0, 2.0, 2.0], [0, 1, 0, 1]),
    ([3.0, 2.0, 1.0, 0.5], [0, 1, 2, 2]),
]


def discounts(size):
    return 1 / np.log2(np.arange(2, size + 2))


def disparity(exposure, relevances, groups):
    arrays = (torch.tensor(values)[None] for values in (exposure, relevances, groups))
    return group_disparity(*arrays, torch.ones(1, len(groups), dtype=torch.bool)).mean


def best_mixture(relevances, groups, *, strength, max_disparity=None):
    """The same optimum over mixtures of all rankings: a program of its own, with an inequality a pair of groups."""
    u, codes = np.array(relevances), np.array(groups)
    v = discounts(len(u))
    exposures = np.array([v[np.argsort(ranking)] for ranking in permutations(range(len(u)))])  # (ranking, item)
    kinds = sorted(set(groups))
    treatment = {g: exposures[:, codes == g].mean(1) / u[codes == g].mean() for g in kinds}
    merit = {g: u[codes == g].mean() for g in kinds}
    unordered = [(a, b) for a in kinds for b in kinds if a < b]
    rows = []
    for slack, (a, b) in enumerate(unordered):
        for high, low in ((a, b), (b, a)):
            if merit[high] >= merit[low]:
                rows.append(np.concatenate([treatment[high] - treatment[low], -np.eye(len(unordered))[slack]]))
    limits = [0.0] * len(rows)
    if max_disparity is not None:
        rows.append(np.concatenate([np.zeros(len(exposures)), np.ones(len(unordered))]))
        limits.append(max_disparity * len(unordered))
    costs = np.concatenate([-exposures @ u, np.full(len(unordered), strength / len(unordered))])
    total = np.concatenate([np.ones(len(exposures)), np.zeros(len(unordered))])[None]
    return -linprog(costs, A_ub=np.array(rows), b_ub=limits, A_eq=total, b_eq=[1.0]).fun


@pytest.mark.parametrize("strength", [0.0, 0.3, 2.0, 50.0])
@pytest.mark.parametrize(("relevances", "groups"), CASES)
def test_penalty_against_all_mixtures_of_rankings(relevances, groups, strength):
    fair = penalized_ranking(relevances, groups, strength=strength)
    expected = best_mixture(relevances, groups, strength=strength)
    assert fair.utility - strength * fair.disparity == pytest.approx(expected, abs=1e-7)
    exposure = fair.probabilities @ discounts(len(groups))
    assert fair.disparity == pytest.approx(disparity(exposure, relevances, groups), abs=1e-9)
    assert np.abs(fair.probabilities.sum(0) - 1).max() < 1e-8


@pytest.mark.parametrize("limit", [0.0, 0.02, 10.0])
@pytest.mark.parametrize(("relevances", "groups"), CASES)
def test_limit_against_all_mixtures_of_rankings(relevances, groups, limit):
    fair = constrained_ranking(relevances, groups, max_disparity=limit)
    assert fair.disparity <= limit + 1e-8
    assert fair.utility == pytest.approx(best_mixture(relevances, groups, strength=0.0, max_disparity=limit), abs=1e-7)


def test_without_strength_items_are_sorted():
    relevances = np.random.default_rng(0).random(12)
    fair = penalized_ranking(relevances, np.arange(12) % 2, strength=0.0)
    assert fair.probabilities.argmax(0).tolist() == np.argsort(-relevances).tolist()
    assert fair.utility == pytest.approx((np.sort(relevances)[::-1] * discounts(12)).sum())


def test_fairness_has_its_price_and_reaches_zero():
    relevances, groups = np.array([4.0, 3.9, 3.8, 1.0, 0.9]), ["a", "b", "a", "b", "b"]
    points = [penalized_ranking(relevances, groups, strength=s) for s in (0.0, 0.5, 2.0, 100.0)]
    disparities = [point.disparity for point in points]
    assert disparities == sorted(disparities, reverse=True)
    assert [point.utility for point in points] == sorted((point.utility for point in points), reverse=True)
    assert disparities[-1] == pytest.approx(0, abs=1e-8)
    birkhoff_decomposition(points[-1].probabilities)


@pytest.mark.parametrize(
    ("relevances", "groups"),
    [([1.0, 3.0, 2.0], [0, 0, 0]), ([1.0, 3.0, 0.0], [0, 0, 1]), ([1.0, 3.0, -0.5], [0, 0, 1])],
)
def test_where_disparity_says_nothing_items_are_sorted(relevances, groups):
    for fair in (
        penalized_ranking(relevances, groups, strength=9.0),
        constrained_ranking(relevances, groups, max_disparity=0.0),
    ):
        assert fair.probabilities.argmax(0).tolist() == np.argsort(-np.array(relevances), kind="stable").tolist()
        assert math.isnan(fair.disparity)
        assert not fair.is_constrained


def test_merit_may_differ_from_what_utility_counts():
    fair = constrained_ranking([7.0, 1.0], [0, 1], max_disparity=0.0, merit=[3.0, 2.0], bias=[1.0, 0.5])
    assert (fair.probabilities @ [1.0, 0.5]).tolist() == pytest.approx([0.9, 0.6])
    assert fair.utility == pytest.approx(7 * 0.9 + 0.6)


def test_wrong_input_is_named():
    with pytest.raises(RankPolicyError, match="strength must be 0 or more"):
        penalized_ranking([1.0], [0], strength=-1.0)
    with pytest.raises(RankPolicyError, match="max_disparity must be 0 or more"):
        constrained_ranking([1.0], [0], max_disparity=math.nan)
    with pytest.raises(RankPolicyError, match="Call it once per query"):
        penalized_ranking([[1.0, 2.0]], [[0, 1]], strength=1.0)
    with pytest.raises(RankPolicyError, match="must be finite"):
        penalized_ranking([1.0, math.nan], [0, 1], strength=1.0)


@pytest.mark.parametrize("equal_merits", [False, True])
def test_two_groups_get_the_optimum_of_the_linear_program(equal_merits):
    generator = np.random.default_rng(0)
    for strength in (0.0, 0.01, 0.1, 1.0, 10.0):
        num_items = int(generator.integers(2, 12))
        u, v = generator.normal(size=num_items), 1 / np.log2(2 + np.arange(num_items))
        codes = np.concatenate([[0, 1], generator.integers(0, 2, num_items - 2)])
        slacks = lp_post_processing._slacks(codes, np.array([0.5, 0.5 if equal_merits else 0.2]))
        found = lp_post_processing.best_probabilities(u, v, slacks, strength=strength)
        # Of all mixtures of all rankings of the items by some multiplier, the program finds none that is better.
        rankings = {tuple(np.argsort(-(u - mu * slacks.differences[0]))) for mu in np.linspace(-20, 20, 4001)}
        exposures = np.array([lp_post_processing._placed(np.array(ranking)) @ v for ranking in rankings]).T
        best = lp_post_processing._best_mixture(exposures, u, slacks, strength, None)
        worths = [
            u @ exposure - strength * max(0.0, float((slacks.differences @ exposure).max()))
            for exposure in (found @ v, exposures @ best.weights)
        ]
        np.testing.assert_allclose(found.sum(0), 1)
        np.testing.assert_allclose(found.sum(1), 1)
        assert found.min() >= 0
        assert worths[0] == pytest.approx(worths[1], abs=1e-9)
