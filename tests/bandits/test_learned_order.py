"""dcm-full: attraction and the order of v learned together."""

import itertools

import numpy as np
import pytest

from rankpolicy.bandits import DcmFull, DcmFullTS, DcmKLUCB
from rankpolicy.simulation import dcm_user, expected_reward, random_user, simulate, stationary
from rankpolicy.simulation.users import draw_clicks

ATTRACTION = np.array([0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.05])
OUT_OF_ORDER = (0.1, 0.5, 0.9, 0.2)
IN_ORDER = (0.9, 0.6, 0.4, 0.1)


def expected_counts(bandit):
    return bandit.memory.statistics.sum(1)


def test_by_hand():
    """Means start at 1/2, and 1 - v at 1: after the first click, silence below has probability 1/4."""
    bandit = DcmFull(num_items=3, cutoff=3)
    bandit.learn([2, 0, 1], [1, 0, 0])
    counts = expected_counts(bandit)
    # Position 0 was clicked, no click followed, and one would have with 3/4 had the user gone on. pooled = (1 + 0) / (1 + 0) = 1 before.
    np.testing.assert_allclose(counts[1:4], [[0, 0.75], [0, 0], [0, 0]])
    # Nothing above position 0 only: a click where 1/2 was expected.
    np.testing.assert_allclose(counts[4:], [[1, 0.5], [0, 0], [0, 0]])
    # 1 - v = 1 before this list: the user went on for sure, and both items below were examined.
    np.testing.assert_allclose(bandit.memory.statistics[0], [[0, 1], [0, 1], [1, 1]])
    bandit.learn([2, 0, 1], [1, 0, 0])
    # Now the items promise 3/4, 1/4 and 1/4. 1 - v(0): pooled = 1 / 1.75, (0 + 4 pooled) / (0.75 + 4) = 0.4812
    went_on = 0.4812030075 * 0.75**2
    assert bandit.memory.statistics[0, 0, 1] == pytest.approx(1 + went_on / (1 - 0.4812030075 + went_on))
    np.testing.assert_allclose(expected_counts(bandit)[1], [0, 0.75 + 1 - 0.75**2])


def test_termination_and_attraction_are_recovered():
    user, generator = dcm_user(ATTRACTION[:5], OUT_OF_ORDER), np.random.default_rng(0)
    bandit = DcmFull(num_items=5, cutoff=4)
    for _ in range(20_000):
        ranking = generator.permutation(5)[:4]
        bandit.learn(ranking, draw_clicks(user, ranking, generator))
    continued, expected = expected_counts(bandit)[1:4].T
    np.testing.assert_allclose(1 - continued / expected, OUT_OF_ORDER[:3], atol=0.04)
    clicks, examined = bandit.memory.statistics[0].T
    np.testing.assert_allclose(clicks / examined, ATTRACTION[:5], atol=0.02)
    unclicked, promised = expected_counts(bandit)[5:].T
    np.testing.assert_allclose(unclicked / promised, 1, atol=0.05)  # DCM users examine all until they click
    assert bandit.rank()[:3].tolist() == [2, 1, 0]  # 0.9, 0.5, 0.1; the last position stays last


def final_regrets(bandits, user, *, num_runs=12, num_steps=4000):
    simulation = simulate(bandits, stationary(user, 4), num_steps=num_steps, num_runs=num_runs, steps=[num_steps])
    return {name: regret[:, -1].mean() for name, regret in simulation.regrets.items()}


def in_known_order(**settings):
    return DcmKLUCB(positions=(*OUT_OF_ORDER[:3], 0.0), **settings)


@pytest.mark.parametrize("name", ["dcm-full", "dcm-full-ts"])
def test_regret_where_v_is_out_of_order(name):
    learned = DcmFull if name == "dcm-full" else DcmFullTS
    user = dcm_user(ATTRACTION, (*OUT_OF_ORDER[:3], 0.0))
    regrets = final_regrets({"sorted": DcmKLUCB, "known": in_known_order, "learned": learned}, user)
    assert regrets["known"] < 0.5 * regrets["sorted"]
    assert regrets["learned"] <= 1.2 * regrets["known"]


def test_nothing_is_lost_where_v_descends():
    regrets = final_regrets({"sorted": DcmKLUCB, "learned": DcmFull}, dcm_user(ATTRACTION, IN_ORDER))
    assert regrets["learned"] <= 1.03 * regrets["sorted"]


@pytest.mark.parametrize("kind", ["pbm", "ubm", "ccm", "dbn", "sdbn"])
def test_users_of_other_kinds_do_not_mislead_it(kind):
    drawn = [
        final_regrets({"sorted": DcmKLUCB, "learned": DcmFull}, random_user(kind, 12, 4, random_state=seed), num_runs=4)
        for seed in range(4)
    ]
    assert sum(regrets["learned"] for regrets in drawn) <= sum(regrets["sorted"] for regrets in drawn)


def test_no_bandit_can_learn_v_of_the_last_position():
    """Users who differ in v(K) click alike on every list, but their best lists differ: why regret has no bound for every v."""
    users = [dcm_user([0.8, 0.4], [0.5, last]) for last in (0.1, 0.9)]
    for ranking in itertools.permutations(range(2)):
        walks = [user.walk(ranking) for user in users]
        np.testing.assert_array_equal(walks[0].after_click[:-1], walks[1].after_click[:-1])
        np.testing.assert_array_equal(walks[0].attraction, walks[1].attraction)
    values = [[expected_reward(user, ranking) for ranking in ([0, 1], [1, 0])] for user in users]
    assert [np.argmax(rewards) for rewards in values] == [0, 1]
