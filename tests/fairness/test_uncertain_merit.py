"""The best fair policy under uncertain labels, against a linear program over all permutations."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from rankpolicy.fairness import group_disparity
from rankpolicy.fairness.label_scenarios import MeritScenarios
from rankpolicy.fairness.two_groups import expected_disparity, exposure_frontier
from rankpolicy.fairness.uncertain_merit import fair_policies


def log_bias(n):
    return 1 / np.log2(np.arange(2, n + 2))


def exposures_of_all_rankings(n, bias):
    rankings = np.array(list(permutations(range(n))))
    exposures = np.zeros((len(rankings), n))
    np.put_along_axis(exposures, rankings, np.broadcast_to(bias, rankings.shape), axis=1)
    return exposures


def brute_force(values, codes, scenarios, strength, bias, *, two_sided):
    """The highest E[utility] - strength E[D] of all mixtures of all rankings."""
    exposures = exposures_of_all_rankings(len(values), bias)
    num_groups = codes.max() + 1
    means = np.stack([exposures[:, codes == g].mean(1) for g in range(num_groups)])  # (group, ranking)
    pairs = list(combinations(range(num_groups), 2))
    rows, slacks = [], 0
    costs = []
    for merits, probability in zip(scenarios.merits, scenarios.probabilities, strict=True):
        if (merits <= 0).any():
            continue
        for a, b in pairs:
            difference = means[a] / merits[a] - means[b] / merits[b]
            for sign, holds in ((1, merits[a] >= merits[b]), (-1, merits[b] >= merits[a])):
                if holds or two_sided:
                    rows.append((sign * difference, slacks))
            slacks += 1
            costs.append(strength * probability / len(pairs))
    upper = np.zeros((len(rows), len(exposures) + slacks))
    for number, (row, slack) in enumerate(rows):
        upper[number, : len(exposures)], upper[number, len(exposures) + slack] = row, -1
    found = linprog(
        np.concatenate([-exposures @ values, costs]),
        A_ub=upper if rows else None,
        b_ub=np.zeros(len(rows)) if rows else None,
        A_eq=np.repeat([[1.0, 0.0]], [len(exposures), slacks], axis=1),
        b_eq=[1.0],
    )
    assert found.status == 0
    return -found.fun


def exposure_of(policy, bias):
    exposure = np.zeros(len(bias))
    for ranking, weight in zip(policy.rankings, policy.weights, strict=True):
        exposure[ranking] += weight * bias
    return exposure


def objective(policy, values, codes, scenarios, strength, bias, *, two_sided):
    """By ``group_disparity``, scenario by scenario."""
    exposure = exposure_of(policy, bias)
    disparity = 0.0
    for merits, probability in zip(scenarios.merits, scenarios.probabilities, strict=True):
        if (merits <= 0).any():
            continue
        if two_sided:
            treated = [exposure[codes == g].mean() / merits[g] for g in range(len(merits))]
            disparity += probability * np.mean([abs(a - b) for a, b in combinations(treated, 2)])
        else:
            arrays = (exposure, merits[codes], codes, np.ones(len(codes), bool))
            disparity += probability * group_disparity(*(torch.from_numpy(x)[None] for x in arrays)).mean
    return values @ exposure - strength * disparity


def random_query(generator, num_groups, max_items=5):
    n = int(generator.integers(num_groups, max_items + 1))
    codes = generator.permutation(
        np.concatenate([np.arange(num_groups), generator.integers(0, num_groups, n - num_groups)])
    )
    labels = generator.integers(0, 4, (int(generator.integers(1, 6)), n)).astype(float)
    merits = np.stack([labels[:, codes == g].mean(1) for g in range(num_groups)], axis=1)
    probabilities = generator.dirichlet(np.ones(len(labels)))
    values = generator.integers(0, 5, n) / 4 if generator.random() < 0.5 else generator.random(n)
    return values, codes, MeritScenarios(merits=merits, probabilities=probabilities)


STRENGTHS = [0.0, 0.01, 0.1, 0.3, 1.0, 3.0, 30.0]


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_two_groups_reach_the_optimum_over_all_mixtures(seed, two_sided):
    values, codes, scenarios = random_query(np.random.default_rng(seed), 2)
    bias = log_bias(len(values))
    policies = fair_policies(values, codes, scenarios, strengths=STRENGTHS, bias=bias, two_sided=two_sided)
    for strength, policy in zip(STRENGTHS, policies, strict=True):
        assert len(policy.weights) <= 2
        assert policy.weights.sum() == pytest.approx(1)
        given = (values, codes, scenarios, strength, bias)
        reached = objective(policy, *given, two_sided=two_sided)
        assert reached == pytest.approx(brute_force(*given, two_sided=two_sided), abs=1e-8)


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_more_groups_reach_the_optimum_over_all_mixtures(seed, two_sided):
    values, codes, scenarios = random_query(np.random.default_rng(seed), 3)
    bias = log_bias(len(values))
    for strength in (0.0, 0.2, 5.0):
        given = (values, codes, scenarios, strength, bias)
        (policy,) = fair_policies(values, codes, scenarios, strengths=[strength], bias=bias, two_sided=two_sided)
        reached = objective(policy, *given, two_sided=two_sided)
        assert reached == pytest.approx(brute_force(*given, two_sided=two_sided), abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_program_of_many_groups_agrees_with_the_frontier_of_two(seed):
    from rankpolicy.fairness.uncertain_merit import _by_program

    values, codes, scenarios = random_query(np.random.default_rng(seed), 2, max_items=8)
    bias = log_bias(len(values))
    for strength in (0.1, 2.0):
        (ours,) = fair_policies(values, codes, scenarios, strengths=[strength], bias=bias)
        theirs = _by_program(values, codes, scenarios, strength, bias, two_sided=False)
        values_of = [
            objective(policy, values, codes, scenarios, strength, bias, two_sided=False) for policy in (ours, theirs)
        ]
        assert values_of[0] == pytest.approx(values_of[1], abs=1e-7)


@pytest.mark.parametrize("num_groups", [2, 3])
def test_infinite_strength_is_equal_exposure_at_the_highest_utility(num_groups):
    for seed in range(5):
        values, codes, scenarios = random_query(np.random.default_rng(seed), num_groups)
        bias = log_bias(len(values))
        (policy,) = fair_policies(values, codes, scenarios, strengths=[math.inf], bias=bias)
        exposure = exposure_of(policy, bias)
        means = [exposure[codes == g].mean() for g in range(num_groups)]
        assert means == pytest.approx([bias.mean()] * num_groups)
        alike = MeritScenarios(merits=np.ones((1, num_groups)), probabilities=np.ones(1))
        assert values @ exposure == pytest.approx(
            brute_force(values, codes, alike, 1e5, bias, two_sided=True), abs=1e-6
        )


def test_infinite_strength_of_the_two_sided_aim_is_the_least_expected_disparity():
    values, codes, scenarios = random_query(np.random.default_rng(3), 2)
    bias = log_bias(len(values))
    (policy,) = fair_policies(values, codes, scenarios, strengths=[math.inf], bias=bias, two_sided=True)
    nothing = np.zeros_like(values)
    least = -brute_force(nothing, codes, scenarios, 1.0, bias, two_sided=True)
    assert -objective(policy, nothing, codes, scenarios, 1.0, bias, two_sided=True) == pytest.approx(least)


@pytest.mark.parametrize("seed", range(10))
def test_vertices_of_the_frontier_are_rankings_and_the_frontier_is_the_best_of_all(seed):
    generator = np.random.default_rng(seed)
    n = int(generator.integers(2, 6))
    values, is_1 = generator.integers(0, 4, n) / 2, np.arange(n) % 2 == 1
    bias = log_bias(n)
    frontier = exposure_frontier(values, is_1, bias)
    for vertex, (t, utility) in enumerate(zip(frontier.exposures, frontier.utilities, strict=True)):
        ranking = frontier.ranking(vertex)
        assert sorted(ranking) == list(range(n))
        exposure = np.empty(n)
        exposure[ranking] = bias
        assert (exposure[is_1].sum(), values @ exposure) == pytest.approx((t, utility))
    every = exposures_of_all_rankings(n, bias)
    assert (every @ values <= frontier.utility(every[:, is_1].sum(1)) + 1e-12).all()
    assert (np.diff(frontier.exposures) > 0).all()


def test_a_scenario_without_merit_in_a_group_does_not_count():
    merits = np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 0.0]])
    with_and_without = [
        expected_disparity(MeritScenarios(merits=m, probabilities=np.full(len(m), 0.3)), np.array([2, 3]), 3.0)
        for m in (merits, merits[:1])
    ]
    t = np.linspace(0.5, 2.5, 9)
    np.testing.assert_allclose(with_and_without[0](t), with_and_without[1](t))


def test_point_estimates_and_uncertain_labels_give_different_policies():
    # Merits 1 and 1 on average; each is 0.5 or 1.5. At equal exposure nobody has too much, whatever the labels are.
    values, codes, bias = np.array([1.0, 0.9]), np.array([0, 1]), np.array([1.0, 0.5])
    merits = np.array([[0.5, 1.5], [1.5, 0.5], [0.5, 0.5], [1.5, 1.5]])
    known = MeritScenarios(merits=np.array([[1.0, 1.0]]), probabilities=np.ones(1))
    uncertain = MeritScenarios(merits=merits, probabilities=np.full(4, 0.25))
    # Moving t off equal exposure gains 0.1 per unit. It costs 2 units of D where merits are known to be equal, and on average
    # (1 / 0.5 + 1 / 0.5) / 4 + (1 / 1.5 + 1 / 1.5) / 4 = 4 / 3 where they are not.
    strength = 0.06
    first, second = (
        fair_policies(values, codes, scenarios, strengths=[strength], bias=bias)[0] for scenarios in (known, uncertain)
    )
    assert first.weights.tolist() == pytest.approx([0.5, 0.5])
    assert max(second.weights) > 0.5 + 1e-6
