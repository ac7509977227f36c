"""Enumeration of all lists and clicks: trials are below the true difference, accounts unbiased; bounds hold as often as they say."""

from itertools import permutations, product

import numpy as np
import pytest

from rankpolicy.online.evidence import MOST_WEIGHT, Earnings, LossAccount, Trial, error_of_test
from rankpolicy.online.lower_bound import SumLowerBound
from rankpolicy.online.online_ranker import log_prefix_probabilities

CUTOFF = 3
SCORES = np.array([0.5, -0.2, 0.9, 0.1])
WORSE, BETTER = np.array([-1.5, 0.5, -0.5, 1.5]), np.array([2.0, 0.3, 2.5, -1.0])
ATTRACTION, STOP = np.array([0.6, 0.2, 0.8, 0.1]), np.array([0.7, 0.1, 0.4, 0.2])
RANKINGS = np.array(list(permutations(range(4), CUTOFF)))
CLICKS = np.array(list(product((0, 1), repeat=CUTOFF)), float)
SHARE = 0.2


def log_prefixes(scores):
    return log_prefix_probabilities(np.tile(scores, (len(RANKINGS), 1)), np.ones((len(RANKINGS), 4), bool), RANKINGS)


def click_probabilities():
    """P(clicks | ranking) (ranking, pattern) of users who read from the top and may stop after a click."""
    result = np.zeros((len(RANKINGS), len(CLICKS)))
    for row, ranking in enumerate(RANKINGS):
        for column, pattern in enumerate(CLICKS):
            reading = 1.0  # probability of the pattern so far, still reading; stopped is the same with no further click
            stopped = 0.0
            for item, click in zip(ranking, pattern, strict=True):
                a, s = ATTRACTION[item], STOP[item]
                stopped = (0.0 if click else stopped) + (reading * a * s if click else 0.0)
                reading *= a * (1 - s) if click else 1 - a
            result[row, column] = reading + stopped
    return result


PATTERNS = click_probabilities()


def every_list():
    """Rows: every ranking with every click pattern; probability of the pattern given the ranking."""
    rows = np.repeat(np.arange(len(RANKINGS)), len(CLICKS))
    return rows, np.tile(CLICKS, (len(RANKINGS), 1)), PATTERNS.ravel()


def value(prefixes, earnings):
    return float(np.exp(prefixes[:, -1]) @ (PATTERNS @ np.zeros(len(CLICKS)) + expected_earnings(earnings)))


def expected_earnings(earnings):
    return PATTERNS @ earnings.of(CLICKS).sum(1)


EARNINGS = [Earnings(1 / np.log2(np.arange(2, 5)), of_first_click) for of_first_click in (True, False)]
SHOWN = np.logaddexp(np.log(1 - SHARE) + log_prefixes(SCORES), np.log(SHARE) + log_prefixes(WORSE))


def test_click_patterns_sum_to_one():
    np.testing.assert_allclose(PATTERNS.sum(1), 1)


def terms_of(bound_owner, add):
    """The terms that ``add`` gives to a bound."""
    collected = []
    bound_owner.bound.add = lambda terms: collected.append(np.asarray(terms))
    add()
    return collected[0]


def mean_term(contender, earnings, expected, serving=SCORES):
    """E[term] of a trial, over all shown lists, clicks, and lists of the contender; and its lowest value."""
    trial = Trial(np.zeros(1), expected=expected, earnings=earnings, error=0.05, share=SHARE, patience=1)
    rows, clicks, chance = every_list()
    of_contender = log_prefixes(contender)
    mean, lowest = 0.0, np.inf
    for row in range(len(RANKINGS)):  # the list that the contender draws
        drawn = np.tile((of_contender - SHOWN)[row], (len(rows), 1))
        terms = terms_of(
            trial,
            lambda drawn=drawn: trial.add(
                earnings.of(clicks),
                contender=(of_contender - SHOWN)[rows],
                serving=(log_prefixes(serving) - SHOWN)[rows],
                drawn=drawn,
            ),
        )
        weights = np.exp(SHOWN[rows, -1]) * chance * np.exp(of_contender[row, -1])
        mean += weights @ terms
        lowest = min(lowest, terms.min())
    return mean, lowest, trial.bound.range


@pytest.mark.parametrize("earnings", EARNINGS, ids=("first click", "clicks"))
@pytest.mark.parametrize("contender", [SCORES + 0.1, WORSE, BETTER])
def test_a_trial_estimates_the_difference_from_below(contender, earnings):
    difference = value(log_prefixes(contender), earnings) - value(log_prefixes(SCORES), earnings)
    largest = np.exp(log_prefixes(contender) - SHOWN).max()
    for expected in (np.zeros(CUTOFF), np.array([0.4, 0.15, 0.05])):
        mean, lowest, range_ = mean_term(contender, earnings, expected)
        assert lowest >= -range_
        if largest <= MOST_WEIGHT:
            assert mean == pytest.approx(difference, abs=1e-12)
        else:
            assert mean < difference


def test_some_contender_has_weights_that_are_cut_and_some_has_none():
    largest = [np.exp(log_prefixes(scores) - SHOWN).max() for scores in (SCORES + 0.1, BETTER)]
    assert largest[0] <= MOST_WEIGHT < largest[1]


@pytest.mark.parametrize("earnings", EARNINGS, ids=("first click", "clicks"))
@pytest.mark.parametrize("serving", [SCORES, BETTER])
def test_an_account_is_unbiased_for_what_is_earned_more_than_by_the_logger(serving, earnings):
    shown = np.logaddexp(np.log(1 - SHARE) + log_prefixes(serving), np.log(SHARE) + log_prefixes(WORSE))
    account = LossAccount(budget=10, error=0.05, most_reward=earnings.most, share=SHARE)
    rows, clicks, chance = every_list()
    for expected in (np.zeros(CUTOFF), np.array([0.4, 0.15, 0.05])):
        terms = terms_of(
            account,
            lambda expected=expected: account.add(
                earnings.of(clicks), logger=(log_prefixes(WORSE) - shown)[rows], expected=expected
            ),
        )
        difference = value(shown, earnings) - value(log_prefixes(WORSE), earnings)
        assert (np.exp(shown[rows, -1]) * chance) @ terms == pytest.approx(difference, abs=1e-12)
        assert terms.min() >= -account.bound.range


@pytest.mark.parametrize(("low", "chance"), [(-1.0, 0.5), (-0.1, 0.9), (-1.0, 0.02)])
def test_the_bound_is_above_the_sum_of_means_at_any_time_in_no_more_runs_than_stated(low, chance):
    generator, error, num_runs = np.random.default_rng(0), 0.1, 400
    high = -low * chance / (1 - chance)  # mean 0
    misses = 0
    for _ in range(num_runs):
        bound = SumLowerBound(range=-low, error=error)
        terms = np.where(generator.random(600) < chance, low, high)
        for block in np.split(terms, 60):
            bound.add(block)
            if bound.value > 0:
                misses += 1
                break
    assert misses <= num_runs * error + 3 * np.sqrt(num_runs * error * (1 - error))


def test_the_bound_finds_a_positive_mean_and_follows_drift():
    generator = np.random.default_rng(0)
    bound = SumLowerBound(range=1.0, error=0.05)
    bound.add(generator.choice([-1.0, 1.0], p=[0.4, 0.6], size=2000))
    assert 200 < bound.value < 400  # the sum of means is 400
    bound.add(generator.choice([-1.0, 1.0], p=[0.6, 0.4], size=2000))
    assert bound.value < 0  # the sum of means is 0 now


def test_errors_of_tests_sum_to_the_whole():
    assert sum(error_of_test(number, 0.05) for number in range(1, 100_000)) == pytest.approx(0.05, abs=1e-6)


def test_an_account_lets_at_most_the_budget_go_and_proven_gains_restore_it():
    account = LossAccount(budget=300.0, error=0.05, most_reward=1.0, share=0.5)
    loss = np.full((1, 1), 1.0)
    lost = 0
    for _ in range(50):  # blocks
        while account.add(loss, logger=np.log([[2.0]]), expected=np.zeros(1)):  # surely 1 lost
            lost += 1
        account.close_block()
    assert lost <= 300
    assert account.left >= 0
    before = account.left
    for _ in range(500):
        assert account.add(loss, logger=np.full((1, 1), -np.inf), expected=np.zeros(1)) or account.bound.value < 0
    assert account.left > before
