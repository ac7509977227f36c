"""The learned tail values of the direct method and of cascade doubly robust."""

import numpy as np
import pytest

from rankpolicy.off_policy.estimates import estimate_policy_value
from rankpolicy.off_policy.estimators import PRIOR_ROUNDS, learned_tail_values
from rankpolicy.off_policy.log import OffPolicyLog
from rankpolicy.off_policy.targets import target_of
from tests.off_policy.off_policy_reference import cascade, prefix_probability, true_value
from tests.off_policy.test_off_policy import NEW, TARGET, THETA, log_of, plackett_luce, random_rounds


def slow_tail_values(rounds, folds, num_folds):
    """chosen and expected of every round, by the recursion as it reads."""

    def drawn(values, prior):
        return (sum(values) + PRIOR_ROUNDS * prior) / (len(values) + PRIOR_ROUNDS)

    def expected(table, context, prefix):
        return sum(
            prefix_probability(TARGET[context], (*prefix, item)) * table[context][item] for item in range(3)
        ) / prefix_probability(TARGET[context], prefix)

    chosen, means = np.zeros((len(rounds), 2)), np.zeros((len(rounds), 2))
    for fold in range(num_folds):
        used = [row for row in range(len(rounds)) if folds[row] != fold]
        later = [0.0] * len(rounds)
        for p in (1, 0):
            earned = [THETA[p] * rewards[p] + later[row] for row, (_, _, rewards) in enumerate(rounds)]
            overall = sum(earned[row] for row in used) / len(used)
            table = [[0.0] * 3 for _ in range(2)]
            for item in range(3):
                of_item = drawn([earned[row] for row in used if rounds[row][1][p] == item], overall)
                for context in range(2):
                    cell = [earned[row] for row in used if rounds[row][0] == context and rounds[row][1][p] == item]
                    table[context][item] = drawn(cell, of_item)
            later = [expected(table, context, items[:p]) for context, items, _ in rounds]
            for row, (context, items, _) in enumerate(rounds):
                if folds[row] == fold:
                    chosen[row, p], means[row, p] = table[context][items[p]], later[row]
    return chosen, means


def test_recursion_equals_the_definition():
    rounds, log = random_rounds(90), log_of(random_rounds(90))
    target = target_of(plackett_luce(NEW), log)
    tails = learned_tail_values(log, target, THETA, num_folds=3, random_state=4)
    folds = np.random.default_rng(4).permutation(90) % 3
    chosen, expected = slow_tail_values(rounds, folds, 3)
    np.testing.assert_allclose(tails.chosen, chosen, atol=1e-12)
    np.testing.assert_allclose(tails.expected, expected, atol=1e-12)


def test_a_round_never_sees_its_own_reward():
    log = log_of(random_rounds(40))
    target = target_of(plackett_luce(NEW), log)
    before = learned_tail_values(log, target, THETA, num_folds=2, random_state=0)
    rewards = log.rewards.copy()
    rewards[7] = 100.0
    changed = OffPolicyLog(items=log.items, rewards=rewards, contexts=log.contexts, propensities=log.propensities)
    after = learned_tail_values(changed, target, THETA, num_folds=2, random_state=0)
    assert (after.expected != before.expected).any()
    np.testing.assert_array_equal(after.chosen[7], before.chosen[7])
    np.testing.assert_array_equal(after.expected[7], before.expected[7])


def test_doubly_robust_is_closer_than_rips():
    """Paired over 200 logs of the same users."""
    truth = true_value(cascade, TARGET, np.ones(2))
    errors = {"rips": [], "cascade-dr": []}
    for seed in range(200):
        log = log_of(random_rounds(300, seed=seed))
        for name, squares in errors.items():
            squares.append((estimate_policy_value(log, plackett_luce(NEW), estimator=name).value - truth) ** 2)
    gain = np.subtract(errors["rips"], errors["cascade-dr"])
    assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_direct_method_comes_near_the_truth():
    log = log_of(random_rounds(3000))
    estimate = estimate_policy_value(log, plackett_luce(NEW), estimator="direct")
    assert estimate.value == pytest.approx(true_value(cascade, TARGET, np.ones(2)), abs=0.04)
    assert estimate.effective_sample_size is None
