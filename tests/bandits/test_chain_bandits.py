"""CCM and DBN bandits: expectations against the enumeration of all walks down a list."""

import itertools

import numpy as np
import pytest

from rankpolicy.bandits import CcmTS, CcmUCB, DbnTS, DbnUCB, kl_ucb
from rankpolicy.simulation import best_list, ccm_user, dbn_user, random_user, simulate, stationary
from rankpolicy.types import RankPolicyError

SUCCESSES, TRIALS = np.array([[3.0, 1.0, 5.0], [2.0, 6.0, 0.5]]), np.array([[10.0, 2.0, 7.0], [4.0, 9.0, 6.0]])


def walks(attraction, second, after_none, after_first, after_second):
    """(probability, clicks, examined, in state B) of all walks down three items, until the user leaves."""

    def down(k, probability, clicks, examined, moods):
        if k == 3:
            yield probability, clicks, examined, moods
            return
        for clicked, mood in ((0, 0), (1, 0), (1, 1)):
            chance = attraction[k] * (second[k] if mood else 1 - second[k]) if clicked else 1 - attraction[k]
            going_on = (after_second if mood else after_first) if clicked else after_none
            seen = (*clicks, clicked), (*examined, 1), (*moods, mood)
            rest = (0,) * (2 - k)
            yield probability * chance * (1 - going_on), *(part + rest for part in seen)
            yield from down(k + 1, probability * chance * going_on, *seen)

    return list(down(0, 1.0, (), (), ()))


def share_told(everything, k):
    """Var E[state | whether clicks follow] / Var state, over all walks with a click at position k."""
    clicked = [(walk[0], walk[3][k], any(walk[1][k + 1 :])) for walk in everything if walk[1][k] == 1]
    chance, state, follows = np.array(clicked).T
    chance /= chance.sum()
    mean, explained = chance @ state, 0.0
    for outcome in (0, 1):
        share = chance @ (follows == outcome)
        if share > 0:
            explained += share * (chance @ (state * (follows == outcome)) / share - mean) ** 2
    return explained / (mean * (1 - mean))


@pytest.mark.parametrize("clicks", list(itertools.product((0, 1), repeat=3)))
@pytest.mark.parametrize(
    ("bandit", "chain"),
    [
        (CcmTS(num_items=3, cutoff=3), (0.9, 0.7, 0.3)),
        (DbnTS(num_items=3, cutoff=3), (0.9, 0.9, 0.0)),
        (DbnTS(num_items=3, cutoff=3, continuation=1.0), (1.0, 1.0, 0.0)),
        (CcmUCB(num_items=3, cutoff=3), (0.9, 0.7, 0.3)),
        (DbnUCB(num_items=3, cutoff=3), (0.9, 0.9, 0.0)),
    ],
)
def test_a_list_adds_what_is_expected_of_all_walks_with_its_clicks(bandit, chain, clicks):
    tables = len(bandit.memory.statistics)
    before = np.stack([SUCCESSES, TRIALS], -1)[:tables]
    bandit.memory.statistics[:] = before
    mean = (1 + SUCCESSES) / (2 + TRIALS)
    order = [2, 0, 1]
    everything = walks(mean[0][order], mean[tables - 1][order], *chain)
    possible = [walk for walk in everything if walk[1] == clicks]
    total = sum(walk[0] for walk in possible)
    examined, moods = (sum(walk[0] * np.array(walk[part]) for walk in possible) / total for part in (2, 3))
    told = [share_told(everything, k) for k in range(3)]
    expected = before.copy()
    expected[0, order] += np.stack([clicks, examined], 1)
    expected[tables - 1, order] += np.stack([moods, clicks], 1) * np.array(told)[:, None]
    bandit.learn(order, clicks)
    np.testing.assert_allclose(bandit.memory.statistics, expected, atol=1e-12)


def test_known_items_are_shown_in_their_best_order():
    """A hundred million observations leave nothing to chance."""
    for seed in range(5):
        generator = np.random.default_rng(seed)
        attraction, satisfaction = generator.uniform(0.1, 0.9, (2, 6))
        for bandit, user in (
            (CcmTS(num_items=6, cutoff=3), ccm_user(attraction, (0.9, 0.7, 0.3))),
            (DbnTS(num_items=6, cutoff=3), dbn_user(attraction, satisfaction, 0.9)),
            (CcmUCB(num_items=6, cutoff=3), ccm_user(attraction, (0.9, 0.7, 0.3))),
            (DbnUCB(num_items=6, cutoff=3), dbn_user(attraction, satisfaction, 0.9)),
        ):
            rates = np.stack([attraction, satisfaction])[: len(bandit.memory.statistics)]
            bandit.memory.statistics[:] = 1e8 * np.stack([rates, np.ones_like(rates)], -1)
            np.testing.assert_array_equal(bandit.rank(), best_list(user, np.arange(6), 3))


@pytest.mark.parametrize("log_log_weight", [0.0, 3.0])
def test_upper_bounds_choose_the_list(log_log_weight):
    """A plain reference: the list that is best if every probability were its KL-UCB, for items that are all well known."""
    time = 50
    threshold = np.log(time) + log_log_weight * np.log(np.log(time))
    for seed in range(10):
        generator = np.random.default_rng(seed)
        trials = generator.uniform(60, 200, (2, 6))
        successes = trials * generator.uniform(0.1, 0.9, (2, 6))
        attraction, satisfaction = kl_ucb(successes / trials, threshold / trials)
        for bandit, user in (
            (CcmUCB(num_items=6, cutoff=3, log_log_weight=log_log_weight), ccm_user(attraction, (0.9, 0.7, 0.3))),
            (DbnUCB(num_items=6, cutoff=3, log_log_weight=log_log_weight), dbn_user(attraction, satisfaction, 0.9)),
        ):
            bandit.memory.statistics[:] = np.stack([successes, trials], -1)[: len(bandit.memory.statistics)]
            bandit.memory.steps[0] = time - 1
            chosen = set(np.argsort(-attraction * (satisfaction if isinstance(bandit, DbnUCB) else 1))[:3].tolist())
            shown = bandit.rank()
            assert set(shown.tolist()) == chosen
            if isinstance(bandit, CcmUCB):
                np.testing.assert_array_equal(shown, best_list(user, np.array(sorted(chosen)), 3))


@pytest.mark.parametrize("kind", [DbnTS, DbnUCB])
def test_items_of_unknown_satisfaction_are_not_shown_last(kind):
    """Item 2 attracts most and may satisfy, but nothing is known of that: at the last position nothing would be learned either."""
    bandit = kind(num_items=4, cutoff=3)
    bandit.memory.statistics[0] = 1e6 * np.array([[0.8, 1], [0.7, 1], [0.5, 1], [0.4, 1]])
    bandit.memory.statistics[1] = 1e6 * np.array([[0.9, 1], [0.9, 1], [0.0, 0], [0.7, 1]])
    bandit.memory.steps[0] = 1000
    for _ in range(20):
        shown = bandit.rank().tolist()
        assert set(shown) >= {0, 1}
        assert shown == [0, 1, 3] or shown == [2, 0, 1]


@pytest.mark.parametrize("bandit", ["dbn-ts", "dbn-ucb"])
def test_regret_with_dbn_users_grows_slower_than_steps(bandit):
    """Item 9 of these users attracts always and satisfies hardly ever; it used to stay last for ever, with linear regret."""
    pytest.importorskip("numba")
    problem = stationary(random_user("dbn", 10, 3, random_state=5), 3)
    found = simulate([bandit], problem, num_steps=32_000, num_runs=6, executor="serial")
    middle = int(np.searchsorted(found.steps, 16_000))
    per_step = found.regrets[bandit][:, middle] / found.steps[middle]
    later = (found.regrets[bandit][:, -1] - found.regrets[bandit][:, middle]) / (found.steps[-1] - found.steps[middle])
    assert later.mean() < 0.6 * per_step.mean()


def test_settings_are_checked():
    for make, text in [
        (lambda: CcmTS(num_items=3, cutoff=2, continuation=(0.5, 0.5)), "tau_1, tau_2, tau_3; got 2"),
        (
            lambda: CcmTS(num_items=3, cutoff=2, continuation=(0.5, 0.5, 1.5)),
            "continuation must be at least 0 and at most 1",
        ),
        (lambda: DbnTS(num_items=3, cutoff=2, continuation=-0.1), "continuation must be at least 0 and at most 1"),
        (lambda: DbnTS(num_items=3, cutoff=2, prior_clicks=0.0), "prior_clicks"),
    ]:
        with pytest.raises(RankPolicyError, match=text):
            make()
