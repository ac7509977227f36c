from itertools import product

import numpy as np
import pytest

from rankpolicy.fairness.label_scenarios import (
    binary_scenarios,
    counts_without_each,
    poisson_binomial,
    sampled_scenarios,
)


def log_bias(n):
    return 1 / np.log2(np.arange(2, n + 2))


def every_outcome(probabilities):
    outcomes = np.array(list(product((0.0, 1.0), repeat=len(probabilities))))
    return outcomes, np.where(outcomes == 1, probabilities, 1 - probabilities).prod(1)


@pytest.mark.parametrize("codes", [[0, 1, 0, 1, 1], [0, 0, 0, 0, 0]])
@pytest.mark.parametrize("seed", range(5))
def test_binary_scenarios_are_those_of_all_outcomes(seed, codes):
    generator = np.random.default_rng(seed)
    probabilities, codes = generator.random(5), np.array(codes)
    bias = log_bias(5)
    outcomes, weights = every_outcome(probabilities)
    ideal = -np.sort(-outcomes, axis=1) @ bias
    values = weights @ (outcomes / np.where(ideal > 0, ideal, 1)[:, None])
    found = binary_scenarios(probabilities, codes, bias)
    np.testing.assert_allclose(found.values, values)
    assert found.scenarios.probabilities.sum() == pytest.approx(1)
    merits = np.stack([outcomes[:, codes == g].mean(1) for g in np.unique(codes)], axis=1)
    for merit, probability in zip(found.scenarios.merits, found.scenarios.probabilities, strict=True):
        assert weights[(np.abs(merits - merit) < 1e-12).all(1)].sum() == pytest.approx(probability)


def test_counts_of_ones():
    probabilities = np.array([0.1, 0.6, 0.9, 0.3])
    outcomes, weights = every_outcome(probabilities)
    np.testing.assert_allclose(poisson_binomial(probabilities), [weights[outcomes.sum(1) == k].sum() for k in range(5)])
    many = np.random.default_rng(0).random(300) ** 3
    for each in (probabilities, np.array([0.0, 1.0, 0.5]), np.array([0.7]), many, 1 - many):
        found = counts_without_each(each)
        assert found.shape == (len(each), len(each))
        for item, counts in enumerate(found):
            np.testing.assert_allclose(counts, poisson_binomial(np.delete(each, item)), atol=1e-13)


def test_samples_that_are_all_outcomes_give_the_same_as_the_exact_scenarios():
    labels, codes = np.array(list(product((0.0, 1.0), repeat=4))), np.array([0, 0, 1, 1])
    sampled = sampled_scenarios(labels, codes, log_bias(4))
    exact = binary_scenarios(np.full(4, 0.5), codes, log_bias(4))
    np.testing.assert_allclose(sampled.values, exact.values)
    for merit, probability in zip(exact.scenarios.merits, exact.scenarios.probabilities, strict=True):
        same = (np.abs(sampled.scenarios.merits - merit) < 1e-12).all(1)
        assert sampled.scenarios.probabilities[same].sum() == pytest.approx(probability)


def test_gain_and_merit_are_functions_of_the_label():
    labels, codes, bias = np.array([[2.0, 1.0]]), np.array([0, 1]), np.array([1.0, 0.5])
    found = sampled_scenarios(labels, codes, bias, gain="exp2", merit="exp2")
    np.testing.assert_allclose(found.values, np.array([3.0, 1.0]) / 3.5)
    np.testing.assert_allclose(found.scenarios.merits, [[3.0, 1.0]])
    linear = sampled_scenarios(labels, codes, bias, gain="linear", merit="binary")
    np.testing.assert_allclose(linear.values, np.array([2.0, 1.0]) / 2.5)
    np.testing.assert_allclose(linear.scenarios.merits, [[1.0, 1.0]])
