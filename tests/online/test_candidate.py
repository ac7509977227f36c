"""Enumeration: the doubly robust estimate is unbiased for any model, and its gradient is that of the exact value."""

from itertools import permutations, product

import numpy as np
import pytest

from rankpolicy.online.candidate import Candidate, item_values, proximal_gradient
from rankpolicy.online.logged_lists import PaddedLists
from rankpolicy.online.online_ranker import log_prefix_probabilities
from rankpolicy.policies import PlackettLuce

FEATURES = np.array([[1.0, 0.2], [0.3, 0.9], [0.0, 0.4], [0.7, 0.7]])
ATTRACTION, EXAMINATION = np.array([0.7, 0.3, 0.1, 0.5]), np.array([1.0, 0.5, 0.25])
POSITION_WEIGHTS = 1 / np.log2(np.arange(2, 5))
RANK_WEIGHTS = EXAMINATION * POSITION_WEIGHTS
LOGGER, OTHER = np.array([0.5, -0.3]), np.array([0.9, 0.1])
RANKINGS = np.array(list(permutations(range(4), 3)))
MASK = np.ones((1, 4), bool)


def exposure(weights):
    return PlackettLuce(FEATURES[None] @ weights, MASK).exposure(RANK_WEIGHTS)[0]


def every_list():
    """All lists of the logger with all clicks of position-based users, and their probabilities."""
    patterns = np.array(list(product((0, 1), repeat=3)), float)
    rankings, clicks = np.repeat(RANKINGS, 8, 0), np.tile(patterns, (len(RANKINGS), 1))
    size = len(rankings)
    features, mask = np.tile(FEATURES, (size, 1, 1)), np.ones((size, 4), bool)
    log_prefixes = log_prefix_probabilities(features @ LOGGER, mask, rankings)
    chance = EXAMINATION * ATTRACTION[rankings]
    probabilities = np.exp(log_prefixes[:, -1]) * np.where(clicks == 1, chance, 1 - chance).prod(1)
    exposures = np.tile(exposure(LOGGER), (size, 1))
    return PaddedLists(
        features, mask, rankings, np.ones_like(mask[:, :3]), clicks, exposures, log_prefixes
    ), probabilities


LISTS, PROBABILITIES = every_list()


@pytest.mark.parametrize("model", [np.zeros(4), ATTRACTION, np.array([0.9, 0.1, 0.5, 0.0])])
def test_item_values_are_unbiased_for_attraction_however_bad_the_model(model):
    values = item_values(
        LISTS, np.tile(model, (len(PROBABILITIES), 1)), examination=EXAMINATION, position_weights=POSITION_WEIGHTS
    )
    assert PROBABILITIES.sum() == pytest.approx(1)
    np.testing.assert_allclose(PROBABILITIES @ values, ATTRACTION, atol=1e-9)


def test_a_good_model_lowers_the_variance():
    spread = []
    for model in (np.zeros(4), ATTRACTION):
        values = item_values(
            LISTS, np.tile(model, (len(PROBABILITIES), 1)), examination=EXAMINATION, position_weights=POSITION_WEIGHTS
        )
        spread.append(PROBABILITIES @ (values - ATTRACTION) ** 2)
    assert (spread[1] < spread[0]).all()


def test_the_gradient_is_that_of_the_exact_value_where_nothing_is_clipped():
    lists = PaddedLists(*(array[:1] for array in LISTS))
    ours = proximal_gradient(OTHER, lists, ATTRACTION[None], rank_weights=RANK_WEIGHTS, clip=1e9)
    step = 1e-5
    by_differences = [
        (ATTRACTION @ (exposure(OTHER + step * axis) - exposure(OTHER - step * axis))) / (2 * step)
        for axis in np.eye(2)
    ]
    np.testing.assert_allclose(ours, by_differences, rtol=3e-3)  # the coarse nodes of training


def test_the_mean_gradient_over_all_lists_and_clicks_is_that_of_the_value():
    values = item_values(
        LISTS, np.full((len(PROBABILITIES), 4), 0.4), examination=EXAMINATION, position_weights=POSITION_WEIGHTS
    )
    gradients = [
        proximal_gradient(
            OTHER,
            PaddedLists(*(array[row : row + 1] for array in LISTS)),
            values[row : row + 1],
            rank_weights=RANK_WEIGHTS,
            clip=1e9,
        )
        for row in range(len(PROBABILITIES))
    ]
    of_value = proximal_gradient(
        OTHER, PaddedLists(*(array[:1] for array in LISTS)), ATTRACTION[None], rank_weights=RANK_WEIGHTS, clip=1e9
    )
    np.testing.assert_allclose(PROBABILITIES @ np.array(gradients), of_value, atol=1e-9)


def test_an_item_that_is_exposed_enough_argues_for_no_more():
    lists = PaddedLists(*(array[:1] for array in LISTS))
    far = np.array([8.0, 0.0])  # nearly always item 0 first
    assert exposure(far)[0] > 1.2 * exposure(LOGGER)[0]
    for value, expected in ((1.0, 0.0), (-1.0, None)):
        values = np.array([[value, 0.0, 0.0, 0.0]])
        slope = proximal_gradient(far, lists, values, rank_weights=RANK_WEIGHTS, clip=0.2)
        assert np.allclose(slope, 0) if expected is not None else np.abs(slope).max() > 0


def test_the_click_model_finds_examination_and_attraction():
    generator = np.random.default_rng(0)
    examination, truth = np.array([1.0, 0.6, 0.3]), np.array([2.0, -2.0])
    candidate = Candidate(
        np.zeros(2),
        position_weights=POSITION_WEIGHTS,
        examination=None,
        rate=0.02,
        clip=1.0,
        memory=4000,
        correction="doubly-robust",
    )
    size = 4000
    features, mask = generator.normal(size=(size, 5, 2)), np.ones((size, 5), bool)
    rankings = np.argsort(generator.random((size, 5)), 1)[:, :3]
    attraction = 1 / (1 + np.exp(1 - np.take_along_axis(features @ truth, rankings, 1)))
    clicks = (generator.random((size, 3)) < examination * attraction).astype(float)
    lists = PaddedLists(
        features, mask, rankings, np.ones((size, 3), bool), clicks, np.full((size, 5), RANK_WEIGHTS.sum() / 5),
        log_prefix_probabilities(np.zeros((size, 5)), mask, rankings),
    )  # fmt: skip
    candidate.lists.extend(lists.logged())
    candidate.learn(1500, generator)
    # About 4000 examined items per position, and steps of 0.02: a few hundredths.
    np.testing.assert_allclose(candidate.examination, examination, atol=0.08)
    np.testing.assert_allclose(candidate.model.value, [2.0, -2.0, -1.0], atol=0.4)
    assert candidate.policy.value[0] > 0 > candidate.policy.value[1]
