"""Lemmas 1 to 4 of Katariya et al. (2016) on random instances, with V(x) = 1 - prod (1 - x_k), here the reward of simulated users."""

import numpy as np
import pytest

from rankpolicy.simulation import cascade_user, dcm_user, expected_reward

NUM_INSTANCES = 300
ROUNDING = 1e-12


def value(x):
    """V(x), as the reward of a cascade user with these items."""
    return expected_reward(cascade_user(x), np.arange(len(x)))


def instances(seed, *, most=1.0):
    """x >= y (position,) up to ``most``, and what else an instance needs; with equal, zero and largest numbers among them."""
    generator = np.random.default_rng(seed)
    for _ in range(NUM_INSTANCES):
        length = generator.integers(1, 7)
        pair = np.sort(generator.random((2, length)), 0) ** generator.choice([0.3, 1.0, 4.0])
        special = generator.random((2, length))
        pair[0, special[0] < 0.1] = 0.0
        pair[1, special[1] < 0.1] = 1.0
        pair[0, special[0] > 0.9] = pair[1, special[0] > 0.9]
        yield most * pair[1], most * pair[0], generator


def test_lemma_1_a_difference_of_values_is_at_most_the_difference_of_sums():
    for x, y, _ in instances(1):
        assert value(x) - value(y) <= x.sum() - y.sum() + ROUNDING


@pytest.mark.parametrize("most", [0.05, 0.2, 0.7, 1.0])
def test_lemma_2_and_at_least_alpha_times_it(most):
    for x, y, _ in instances(2, most=most):
        alpha = (1 - most) ** (len(x) - 1)
        assert alpha * (x.sum() - y.sum()) <= value(x) - value(y) + ROUNDING


def test_lemma_3_what_sorting_gains_is_at_most_what_the_weighted_sum_gains():
    """V(c x') is the reward of DCM users, who are satisfied by the click at position k with probability c_k."""
    for x, _, generator in instances(3):
        c = np.sort(generator.random(len(x)))[::-1]
        user, descending = dcm_user(x, c), np.argsort(-x)
        gain = expected_reward(user, descending) - expected_reward(user, np.arange(len(x)))
        assert -ROUNDING <= gain <= c @ x[descending] - c @ x + ROUNDING


def test_lemma_4_satisfaction_shrinks_differences_by_no_more_than_its_probability():
    for x, y, generator in instances(4):
        gamma = generator.random()
        assert value(gamma * x) - value(gamma * y) >= gamma * (value(x) - value(y)) - ROUNDING


def test_the_bounds_are_met():
    """Each inequality becomes an equality somewhere: no constant could be smaller."""
    x, y = np.array([0.4, 0.0, 0.0]), np.zeros(3)
    np.testing.assert_allclose(value(x) - value(y), x.sum() - y.sum())  # Lemma 1: one item
    np.testing.assert_allclose(value(0.3 * x) - value(0.3 * y), 0.3 * (value(x) - value(y)))  # Lemma 4: one item
    others = np.array([0.7, 0.7, 0.7])
    raised, lowered = others.copy(), others.copy()
    lowered[0] = 0.2
    np.testing.assert_allclose(value(raised) - value(lowered), 0.3**2 * 0.5)  # Lemma 2: the others at the maximum
    user = dcm_user(np.array([0.2, 0.5]), np.array([0.6, 0.0]))
    gain = expected_reward(user, [1, 0]) - expected_reward(user, [0, 1])
    np.testing.assert_allclose(gain, 0.6 * (0.5 - 0.2))  # Lemma 3: one position that satisfies
