"""The test for a change of the click rate: false alarms as rarely as it says, changes found soon."""

import math
import random

import pytest

from rankpolicy.service.dashboard.click_drift import (
    BUCKET_US,
    ClickDrift,
    DriftBuckets,
    _hypergeometric_rank,
    threshold_for,
)
from rankpolicy.service.dashboard.statistics import Statistics
from tests.service.dashboard.rows import VERSIONS, click, list_row

BUCKETS_PER_FALSE_ALARM = 200


def num_alarms(seed, *, num_buckets, rate, lists=60):
    users = random.Random(seed)
    drift = ClickDrift(random.Random(seed + 1), threshold=threshold_for(BUCKETS_PER_FALSE_ALARM))
    return sum(
        drift.add(lists, sum(users.random() < rate for _ in range(lists)), end=bucket) for bucket in range(num_buckets)
    )


@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_false_alarms_are_at_most_as_frequent_as_stated(rate):
    num_streams, num_buckets = 20, 400
    alarms = sum(num_alarms(seed, num_buckets=num_buckets, rate=rate) for seed in range(num_streams))
    assert alarms <= num_streams * num_buckets / BUCKETS_PER_FALSE_ALARM


@pytest.mark.parametrize(("before", "after"), [(0.3, 0.15), (0.15, 0.3)])
def test_a_change_is_found_within_a_few_buckets(before, after):
    for seed in range(10):
        users, drift = random.Random(seed), ClickDrift(random.Random(seed))
        raised = [
            drift.add(200, sum(users.random() < (before if bucket < 50 else after) for _ in range(200)), end=bucket)
            for bucket in range(60)
        ]
        assert sum(raised) == 1
        assert 50 <= raised.index(True) <= 56
        assert (drift.rate_after < drift.rate_before) == (after < before)


def test_ranks_are_those_of_the_hypergeometric_distribution():
    def probability(value, drawn, marked, total):
        return math.comb(marked, value) * math.comb(total - marked, drawn - value) / math.comb(total, drawn)

    for drawn, marked, total in [(5, 4, 12), (3, 10, 11), (6, 0, 9), (4, 9, 9), (40, 30, 300)]:
        for value in range(max(0, drawn + marked - total), min(drawn, marked) + 1):
            below = sum(probability(x, drawn, marked, total) for x in range(max(0, drawn + marked - total), value))
            expected = below + 0.25 * probability(value, drawn, marked, total)
            assert _hypergeometric_rank(value, drawn, marked, total, 0.25) == pytest.approx(expected)


def test_a_bucket_is_tested_when_the_windows_of_its_lists_have_ended():
    tested = []

    class Told:
        def add(self, lists, clicked, *, end):
            tested.append((lists, clicked, end))

    buckets = DriftBuckets(Told(), window=1_000)
    for _ in range(120):
        buckets.add_list(5)
    buckets.add_list(BUCKET_US + 1_000)
    buckets.add_clicked_list(5)
    assert tested == []
    buckets.add_list(BUCKET_US + 1_001)
    assert tested == [(120, 1, BUCKET_US)]


def test_statistics_find_a_fall_of_the_click_rate():
    users, lists, clicks, seq = random.Random(0), [], [], 0
    for bucket in range(40):
        for _ in range(150):
            seq += 1
            lists.append(list_row(seq, "ab", stamp=bucket * BUCKET_US + seq))
            if users.random() < (0.4 if bucket < 30 else 0.1):
                clicks.append(click(seq := seq + 1, lists[-1].seq, 0))
    statistics = Statistics()
    statistics.add(lists, clicks, VERSIONS)
    (found,) = statistics.document()["policies"]
    drift = found["click_drift"]
    assert 30 * BUCKET_US < drift["changed_at_us"] <= 34 * BUCKET_US
    assert drift["rate_after"] < 0.2 < 0.35 < drift["rate_before"]
