"""Certified disparity: its bound, its tests in order and its correction for wrong groups, by enumeration and by hand."""

from itertools import permutations

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.evaluation.policy_value import policy_value
from rankpolicy.fairness import mixture_of, position_bias
from rankpolicy.rankers.post_processing.certificate import (
    HeldOut,
    Terms,
    disparities,
    highest_disparity,
    lowest_certified,
    measured_with_wrong_groups,
    with_wrong_groups,
)

TRAIN, HELD_OUT, TEST = (
    rp.data.make_fair_synthetic(size, random_state=seed) for seed, size in enumerate((60, 400, 60))
)
LINEAR = {"relevance": ("regression",), "gain": "linear", "num_samples": 50}
TERMS = Terms(level=0.95, max_disparity=0.1, wrong_groups=0.0, held_out_groups="right")


def sorted_policy(dataset):
    """The items as they stand, in every query."""
    return [mixture_of([np.eye(size) for size in dataset.sizes])]


def test_no_ranking_has_more_than_the_highest_disparity():
    labels, codes = np.array([2.0, 0.0, 1.0, 3.0]), np.array([0, 1, 1, 0])
    data = rp.from_arrays(np.zeros((4, 1)), labels, group=[4], protected=codes)
    bias, highest = position_bias(4), 0.0
    for order in permutations(range(4)):
        exposure = np.empty(4)
        exposure[list(order)] = bias
        mean = [exposure[codes == g].mean() / labels[codes == g].mean() for g in (0, 1)]
        highest = max(highest, mean[0] - mean[1])
    bound = highest_disparity(data, merit="identity")
    assert highest <= bound
    assert bound == pytest.approx((bias[:2].mean() - bias[2:].mean()) / 2.5)


def test_strengths_are_tested_from_the_fairest_up_to_the_first_that_fails():
    """200 queries without disparity make 1.1^200 / 2 of a capital at the highest stake, 10 queries make 1.3, and 20 are needed."""
    high, none = np.ones(200), np.zeros(200)
    held_out = HeldOut(values=np.stack([none, high, none, none, high]), weights=np.ones(200))
    strengths = (0.0, 1.0, 2.0, 3.0, np.inf)
    assert lowest_certified([held_out], strengths, TERMS, 1.0) == 2  # infinity passes by itself; 0 is not reached
    noisy = Terms(level=0.95, max_disparity=0.1, wrong_groups=0.2, held_out_groups="right")
    assert lowest_certified([held_out], strengths, noisy, 1.0) is None  # groups are not known: it is tested
    few = HeldOut(values=held_out.values[:, :10], weights=np.ones(10))
    assert lowest_certified([few], strengths, TERMS, 1.0) == 4


@pytest.mark.parametrize("rate", [0.1, 0.25])
def test_the_correction_for_noisy_groups_has_the_right_mean(rate):
    """Many copies of a query whose groups were changed at random: the weighted disparities average to that of the right groups."""
    generator, copies = np.random.default_rng(0), 40_000
    right, labels = np.array([0, 0, 1]), np.array([1.2, 1.0, 1.0])
    shown = np.tile(right, copies) ^ (generator.random(3 * copies) < rate)
    size = [3] * copies
    noisy = rp.from_arrays(np.zeros((3 * copies, 1)), np.tile(labels, copies), group=size, protected=shown)
    (expected,), _ = disparities(
        sorted_policy(clean := rp.from_arrays(np.zeros((3, 1)), labels, group=[3], protected=right)),
        clean,
        merit="identity",
    )
    corrected = measured_with_wrong_groups(sorted_policy, noisy, rate, "noisy", merit="identity", generator=generator)
    values = np.zeros(copies)  # a query without a disparity counts 0
    values[: len(corrected.weights)] = corrected.weights * corrected.values[0]
    assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(copies)
    assert values.std() / np.sqrt(copies) < 0.1 * expected
    assert corrected.largest_weight == pytest.approx((1 - 2 * rate) ** -3)
    plain = measured_with_wrong_groups(sorted_policy, noisy, rate, "right", merit="identity", generator=generator)
    assert abs(plain.values.sum() / copies - expected) > 0.05 * expected  # so that the correction can be seen


def test_a_wrong_group_is_another_group():
    three = rp.from_arrays(np.zeros((6, 1)), np.ones(6), group=[6], protected=list("abcabc"))
    changed, is_wrong = with_wrong_groups(three, 1.0, np.random.default_rng(0))
    assert is_wrong.all()
    assert all(new != old and new in "abc" for new, old in zip(changed.groups, three.groups, strict=True))


@pytest.fixture(scope="module")
def certified():
    ranker = rp.FairExposure(**LINEAR, certify=0.9, max_disparity=0.006)
    return ranker.fit(TRAIN, valid=HELD_OUT, progress=False)


def test_a_certificate_chooses_the_strength(certified):
    certificate = certified.report_["certificate"]
    assert certificate["level"] == 0.9
    assert certificate["strength"] == certified.report_["strength"] > 0
    assert certificate["num_queries"] == policy_value(certified, HELD_OUT).disparities.num_counted
    assert policy_value(certified, HELD_OUT).disparity < 0.006
    of_fit = rp.FairExposure(**LINEAR, max_disparity=0.006).fit(TRAIN, progress=False)
    assert certificate["strength"] > of_fit.report_["strength"]  # what training data show is not enough


def test_a_certificate_is_saved_and_is_for_its_terms_only(certified, tmp_path):
    certified.save(tmp_path / "model.rp")
    loaded = rp.load(tmp_path / "model.rp")
    np.testing.assert_array_equal(loaded.predict(TEST), certified.predict(TEST))
    assert loaded.frontier(TEST) == certified.frontier(TEST)
    with pytest.raises(rp.RankPolicyError, match="must be those of the fit"):
        loaded.set_params(max_disparity=0.01).predict(TEST)
    assert len(loaded.set_params(certify=None).predict(TEST)) == TEST.num_items


@pytest.mark.parametrize(
    ("settings", "held_out", "message"),
    [
        (
            {"wrong_groups": 0.2},
            HELD_OUT,
            "no strength can be certified to keep max_disparity=0.006 with probability 0.9 on 355",
        ),
        (
            {"wrong_groups": 0.5, "held_out_groups": "noisy"},
            HELD_OUT,
            "groups that are wrong at a rate of 0.5 say nothing",
        ),
        ({}, None, "pass them as valid="),
        ({"aim": "two_sided"}, HELD_OUT, "certify=0.9 would not be read: it is read only when max_disparity"),
    ],
)
def test_what_cannot_be_certified(settings, held_out, message):
    """With the right groups the same bound is certified, see above."""
    ranker = rp.FairExposure(**LINEAR, certify=0.9, max_disparity=0.006)
    with pytest.raises(rp.RankPolicyError, match=message):
        ranker.set_params(**settings).fit(TRAIN, valid=held_out, progress=False)


def test_the_frontier_is_measured_in_one_call(certified):
    rows = certified.frontier(HELD_OUT)
    assert [row["strength"] for row in rows] == [row["strength"] for row in certified.report_["curve"]]
    assert all(row["disparity"] <= row["upper_disparity"] for row in rows)
    (at_one,) = [row for row in rows if row["strength"] == 1.0]
    of_strength = rp.FairExposure(**LINEAR, strength=1.0).fit(TRAIN, progress=False)
    reward = rp.metrics.parse_metric("ndcg", rp.types.Conventions(gain="linear"))
    value = policy_value(of_strength, HELD_OUT, reward=reward)
    assert (at_one["utility"], at_one["disparity"]) == pytest.approx((value.utility, value.disparity))
    assert rows[0]["upper_disparity"] > certified.frontier(HELD_OUT, level=0.5)[0]["upper_disparity"]
