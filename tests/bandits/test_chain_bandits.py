"""CCM and DBN bandits: expectations against the enumeration of all walks down a list."""

import itertools

import numpy as np
import pytest

from rankpolicy.bandits import CcmTS, DbnTS
from rankpolicy.simulation import best_list, ccm_user, dbn_user
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


@pytest.mark.parametrize("clicks", list(itertools.product((0, 1), repeat=3)))
@pytest.mark.parametrize(
    ("bandit", "chain"),
    [
        (CcmTS(num_items=3, cutoff=3), (0.9, 0.7, 0.3)),
        (DbnTS(num_items=3, cutoff=3), (0.9, 0.9, 0.0)),
        (DbnTS(num_items=3, cutoff=3, continuation=1.0), (1.0, 1.0, 0.0)),
    ],
)
def test_a_list_adds_what_is_expected_of_all_walks_with_its_clicks(bandit, chain, clicks):
    tables = len(bandit.memory.statistics)
    before = np.stack([SUCCESSES, TRIALS], -1)[:tables]
    bandit.memory.statistics[:] = before
    mean = (1 + SUCCESSES) / (2 + TRIALS)
    order = [2, 0, 1]
    possible = [walk for walk in walks(mean[0][order], mean[tables - 1][order], *chain) if walk[1] == clicks]
    total = sum(walk[0] for walk in possible)
    examined, moods = (sum(walk[0] * np.array(walk[part]) for walk in possible) / total for part in (2, 3))
    expected = before.copy()
    expected[0, order] += np.stack([clicks, examined], 1)
    expected[tables - 1, order] += np.stack([moods, clicks], 1)
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
        ):
            rates = np.stack([attraction, satisfaction])[: len(bandit.memory.statistics)]
            bandit.memory.statistics[:] = 1e8 * np.stack([rates, np.ones_like(rates)], -1)
            np.testing.assert_array_equal(bandit.rank(), best_list(user, np.arange(6), 3))


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
