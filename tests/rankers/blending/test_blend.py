"""The choices of a blend, on values a reader can redo."""

from dataclasses import replace

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.rankers.blending.blend import KEPT, chosen_share, chosen_sharpness, is_better, spread_within_queries

REWARD = reward_to_maximise("p@1")
# Forty queries of two items, the first relevant.
PAIRS = rp.from_arrays(np.zeros((80, 1)), np.tile([1, 0], 40), group=[2] * 40)
RIGHT, WRONG = np.tile([1.0, -1.0], 40), np.tile([-1.0, 1.0], 40)


def test_the_better_scores_get_the_weight():
    assert (
        chosen_share(2 * WRONG, RIGHT, PAIRS, REWARD) == 0.75
    )  # 0.25 * -2 + 0.75 > 0: as good as 1, and nearer to one half
    assert chosen_share(RIGHT, 2 * WRONG, PAIRS, REWARD) == 0.25


def test_equally_good_scores_share_evenly():
    assert chosen_share(RIGHT, RIGHT, PAIRS, REWARD) == 0.5


def test_a_difference_within_a_standard_error_does_not_count():
    # Of 40 queries the second is right on 20 where the first is wrong, and wrong on 19 where the first is right: the better one by a hair.
    first, second = RIGHT.reshape(40, 2).copy(), RIGHT.reshape(40, 2).copy()
    first[:20] *= -1
    second[20:39] *= -1
    assert chosen_share(first.ravel(), second.ravel(), PAIRS, REWARD) == 0.5


def test_better_is_by_more_than_a_standard_error():
    # Ten of forty queries right more: a difference of .25 with a standard error of sqrt(.25 * .75 / 40) = .068.
    ten = RIGHT.reshape(40, 2).copy()
    ten[:10] *= -1
    assert is_better(RIGHT, ten.ravel(), PAIRS, REWARD)
    assert not is_better(ten.ravel(), RIGHT, PAIRS, REWARD)
    assert not is_better(RIGHT, RIGHT, PAIRS, REWARD)
    weighted = replace(PAIRS, query_weights=np.r_[np.zeros(10), np.ones(30)])
    assert not is_better(RIGHT, ten.ravel(), weighted, REWARD)


def test_weights_of_queries_count():
    weighted = replace(PAIRS, query_weights=np.r_[np.ones(20), np.zeros(20)])
    only_first_half = np.concatenate([RIGHT[:40], 3 * WRONG[40:]])
    assert chosen_share(WRONG, only_first_half, weighted, REWARD) == 0.625  # the nearest to one half that is right


def test_sharpness_keeps_most_of_the_gain_and_no_more():
    """For two items P(first) = sigmoid(2 f): the softest of the factors 0.5, 0.71, 1, ... with 2 P - 1 >= 0.98 of the best is 2.83."""
    factor = chosen_sharpness(RIGHT, PAIRS, REWARD)
    assert np.tanh(factor) >= KEPT > np.tanh(factor / np.sqrt(2))  # tanh f = 2 sigmoid(2 f) - 1
    assert factor == pytest.approx(2**1.5)


def test_spread_is_that_within_queries():
    data = rp.from_arrays(np.zeros((4, 1)), group=[2, 2])
    assert spread_within_queries(np.array([0.0, 2.0, 100.0, 102.0]), data) == 1.0
    assert spread_within_queries(np.array([5.0, 5.0 + 1e-12, 7.0, 7.0]), data) == 0.0
