"""PBM and UBM bandits: what a list says where items may not have been examined."""

import math

import numpy as np
import pytest

from rankpolicy.bandits import PbmTS, PbmUCB, UbmTS
from rankpolicy.types import RankPolicyError

ATTRACTION, EXAMINATION = np.array([0.8, 0.3, 0.5, 0.1]), np.array([1.0, 0.6, 0.25])


def test_pbm_ucb_shows_the_largest_indices_where_they_are_examined_most():
    examination = np.array([0.5, 1.0, 0.2])
    for seed in range(10):
        generator = np.random.default_rng(seed)
        bandit = PbmUCB(num_items=4, cutoff=3, examination=tuple(examination))
        clicked, lists, examined = np.zeros((3, 4))
        for _ in range(60):
            ranking = generator.permutation(4)[:3]
            clicks = generator.random(3) < examination * ATTRACTION[ranking]
            bandit.learn(ranking, clicks)
            clicked[ranking] += clicks
            lists[ranking] += 1
            examined[ranking] += examination
        best = np.argsort(-(clicked / examined + np.sqrt(lists / examined) * np.sqrt(0.5 * math.log(61) / examined)))
        assert bandit.rank().tolist() == [best[1], best[0], best[2]]


def estimated(bandit):
    from rankpolicy.kernels.bandits.examination import fill_examination

    found = np.empty(len(bandit.memory.statistics))
    fill_examination(bandit.memory, found)
    return found


def test_examination_is_found_from_exact_rates():
    """clicks = lists x examination x attraction in every cell, lists of any number: only the true rates fit."""
    lists = np.random.default_rng(0).integers(1_000, 9_000, (3, 4)).astype(float)
    for bandit, true in (
        (PbmTS(num_items=4, cutoff=3), EXAMINATION),
        (UbmTS(num_items=4, cutoff=2), np.array([1.0, 0.6, 0.25])),
    ):
        bandit.memory.statistics[..., 1] = lists
        bandit.memory.statistics[..., 0] = lists * true[:, None] * ATTRACTION
        np.testing.assert_allclose(estimated(bandit), true, atol=0.01)
    np.testing.assert_array_equal(estimated(PbmTS(num_items=4, cutoff=3, examination=(0.9, 0.5, 0.2))), [0.9, 0.5, 0.2])


def test_ubm_cells_are_positions_and_last_clicks():
    bandit = UbmTS(num_items=4, cutoff=4)
    bandit.learn([3, 1, 0, 2], [0, 1, 0, 1])
    found = {(int(cell), int(item)): clicks for cell, item in np.argwhere(bandit.memory.statistics[..., 1])
             for clicks in [bandit.memory.statistics[cell, item, 0]]}  # fmt: skip
    # Position 1: cell 0; 2, none above: 1; 3, last click at 2: 3 + 2; 4, last click at 2: 6 + 2.
    assert found == {(0, 3): 0, (1, 1): 1, (5, 0): 0, (8, 2): 1}


def test_draws_are_close_to_the_posterior():
    """Item 0 shown where e = 0.5, item 1 where e = 1; P(a_0 > a_1) by sums over a grid of the true posteriors."""
    bandit = PbmTS(num_items=2, cutoff=2, examination=(1.0, 0.5))
    bandit.memory.statistics[1, 0] = 12, 40
    bandit.memory.statistics[0, 1] = 11, 20
    grid = (np.arange(2000) + 0.5) / 2000
    first, second = grid**12 * (1 - 0.5 * grid) ** 28, grid**11 * (1 - grid) ** 9
    below = np.cumsum(second) - second / 2
    expected = (first * below).sum() / first.sum() / second.sum()
    shown = np.mean([bandit.rank()[0] == 0 for _ in range(4000)])
    assert abs(shown - expected) < 0.03 + 4 * math.sqrt(expected * (1 - expected) / 4000)


def test_settings_are_checked():
    for make, text in [
        (lambda: PbmTS(num_items=3, cutoff=2, examination=(1.0,)), "2 probabilities for lists of 2; got 1"),
        (lambda: PbmUCB(num_items=3, cutoff=2, examination=(1.0, 0.0)), "above 0"),
        (lambda: PbmUCB(num_items=3, cutoff=2, radius=-1.0), "radius"),
        (lambda: UbmTS(num_items=3, cutoff=2, examination=((1.0,), (1.0,))), "each row"),
        (lambda: UbmTS(num_items=3, cutoff=3, examination=((1.0,), (1.0, 0.5))), "6 probabilities"),
        (lambda: UbmTS(num_items=3, cutoff=2, prior_skips=0.0), "prior_skips"),
    ]:
        with pytest.raises(RankPolicyError, match=text):
            make()
