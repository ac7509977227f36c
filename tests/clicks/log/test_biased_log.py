"""Simulated traffic: what each kind shows, and clicks at the rates asked for."""

import numpy as np
import pytest

from rankpolicy.clicks import make_biased_log

PROPENSITIES = np.array([1.0, 0.5, 0.25])
RELEVANCE = np.array([[0.9, 0.5, 0.2, 0.1], [0.3, 0.6, 0.4, 0.8]])


def made(traffic, num_sessions=20_000):
    return make_biased_log(
        num_sessions, propensities=PROPENSITIES, relevance=RELEVANCE, traffic=traffic, num_rankers=3, random_state=1
    )


@pytest.mark.parametrize("traffic", ["random", "rankers", "swaps"])
def test_clicks_come_at_propensity_times_relevance(traffic):
    log = made(traffic).log
    expected = PROPENSITIES * RELEVANCE[log.queries[:, None], log.items]
    z = (log.clicks - expected).sum(0) / np.sqrt((expected * (1 - expected)).sum(0))
    assert (abs(z) < 4).all()
    assert (np.sort(log.items, 1)[:, 1:] != np.sort(log.items, 1)[:, :-1]).all()


def test_random_traffic_shows_every_item_equally_often_everywhere():
    log = made("random").log
    shares = np.array([(log.items == item).mean(0) for item in range(4)])
    np.testing.assert_allclose(shares, 0.25, atol=4 * np.sqrt(0.25 * 0.75 / 20_000))


def test_rankers_show_few_lists_and_swaps_touch_two_positions():
    log = made("rankers").log
    assert len(np.unique(np.column_stack([log.queries, log.items]), axis=0)) <= 2 * 3
    swapped = made("swaps")
    for query in range(2):
        rows = swapped.log.queries == query
        lists, counts = np.unique(swapped.log.items[rows], axis=0, return_counts=True)
        usual = lists[counts.argmax()]
        changed = swapped.log.items[rows] != usual
        assert set(changed.sum(1)) == {0, 2}
        moved = np.flatnonzero(changed.any(1))
        np.testing.assert_array_equal(np.nonzero(changed[moved])[1].reshape(-1, 2), swapped.swaps[rows][moved])
        assert abs(changed.any(1).mean() - 0.5) < 4 * 0.5 / np.sqrt(rows.sum())


def test_what_cannot_be_made():
    with pytest.raises(ValueError, match="an item for each of 5 positions; it has 4"):
        make_biased_log(10, propensities=np.ones(5), relevance=RELEVANCE, random_state=0)
    with pytest.raises(ValueError, match="traffic must be one of random, rankers, swaps"):
        make_biased_log(10, propensities=PROPENSITIES, relevance=RELEVANCE, traffic="ranker", random_state=0)
