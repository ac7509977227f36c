"""What every bandit promises, over the dict of all of them."""

import io
import json

import numpy as np
import pytest

from rankpolicy.bandits import BANDITS, bandit_class_named, bandit_from_state
from rankpolicy.simulation import cascade_user, ccm_user, dbn_user, dcm_user, pbm_user, simulate, stationary, ubm_user
from rankpolicy.types import RankPolicyError

NUM_ITEMS, CUTOFF = 6, 3
ADDITIVE = [name for name, bandit in BANDITS.items() if bandit.is_additive]
FREE_OF_ORDER = [name for name, bandit in BANDITS.items() if not bandit.depends_on_order]
ATTRACTION = np.where(np.arange(10) < 3, 0.6, 0.1)  # of users by kind, three items of ten shown
USERS = {
    "cascade": cascade_user(ATTRACTION),
    "dcm": dcm_user(ATTRACTION, [0.7, 0.7, 0.7]),
    "pbm": pbm_user(ATTRACTION, [1.0, 0.5, 0.3]),
    "ubm": ubm_user(ATTRACTION, [[1.0, 0, 0, 0], [0.5, 0.9, 0, 0], [0.3, 0.5, 0.9, 0]]),
    "ccm": ccm_user(ATTRACTION, [0.9, 0.7, 0.3]),
    "dbn": dbn_user(ATTRACTION, np.full(10, 0.7), 0.9),
}


def make(name, **settings):
    return bandit_class_named(name)(**({"num_items": NUM_ITEMS, "cutoff": CUTOFF, "random_state": 1} | settings))


def teach(bandit, num_lists, *, random_state=0, available=None):
    """Feedback from a user who likes small item numbers; the lists and clicks."""
    generator = np.random.default_rng(random_state)
    shown = []
    for _ in range(num_lists):
        ranking = bandit.rank(available)
        clicks = (generator.random(len(ranking)) < 0.8 / (1 + ranking)).astype(int)
        bandit.learn(ranking, clicks)
        shown.append((ranking, clicks))
    return shown


@pytest.mark.parametrize("name", BANDITS)
def test_lists_are_permutations_of_available_items(name):
    bandit = make(name)
    for ranking, _ in teach(bandit, 30):
        assert len(set(ranking.tolist())) == CUTOFF
        assert set(ranking.tolist()) <= set(range(NUM_ITEMS))
    for ranking, _ in teach(bandit, 30, available=[5, 1, 2, 4]):
        assert len(set(ranking.tolist())) == CUTOFF
        assert set(ranking.tolist()) <= {5, 1, 2, 4}


@pytest.mark.parametrize("name", BANDITS)
def test_short_and_empty_lists(name):
    bandit = make(name)
    assert bandit.rank([]).shape == (0,)
    bandit.learn([], [])
    assert bandit.memory.steps[0] == 0
    assert sorted(bandit.rank([4, 2]).tolist()) == [2, 4]
    wide = make(name, cutoff=9)
    assert sorted(wide.rank().tolist()) == list(range(NUM_ITEMS))
    bandit.learn(*(np.broadcast_to(values, 2) for values in ([4, 2], [False, True])))  # read-only views serve as well
    assert bandit.memory.steps[0] == 1


@pytest.mark.parametrize(
    "pack", [lambda state: json.loads(json.dumps({k: v.tolist() for k, v in state.items()})), "npz"]
)
@pytest.mark.parametrize("name", BANDITS)
def test_a_state_decides_as_its_bandit_would(name, pack):
    bandit = make(name, **({"window": 7} if name in ADDITIVE else {}))
    teach(bandit, 20)
    state = bandit.state()
    if pack == "npz":
        file = io.BytesIO()
        np.savez(file, **state)
        file.seek(0)
        copy = bandit_from_state(np.load(file, allow_pickle=False))
    else:
        copy = bandit_from_state(pack(state))
    assert type(copy) is type(bandit)
    for (ranking, clicks), (copied, same_clicks) in zip(teach(bandit, 30), teach(copy, 30), strict=True):
        np.testing.assert_array_equal(ranking, copied)
        np.testing.assert_array_equal(clicks, same_clicks)
    np.testing.assert_array_equal(bandit.memory.statistics, copy.memory.statistics)


@pytest.mark.parametrize("name", BANDITS)
def test_bad_input_is_refused(name):
    bandit = make(name)
    before = bandit.memory.statistics.copy()
    for ranking, clicks, text in [
        ([0, 1], [1, 0, 1], "as many clicks as items"),
        ([0, 1], [1], "as many clicks as items"),
        ([0, 6], [1, 0], "from 0 to 5; got 6"),
        ([0, -2], [1, 0], "0 or more; got -2"),
        ([1, 1], [1, 0], "each item once"),
        ([0, 1], [2, 0], "0 or 1; got 2"),
        ([0, 1], [np.nan, 0], "0 or 1; got nan"),
        ([0.0, 1.0], [0, 1], "item numbers"),
        ([0, 1, 2, 3], [0, 0, 0, 0], "at most 3 items"),
        ([0, -1], [0, 1], "past the end"),
    ]:
        with pytest.raises(RankPolicyError, match=text):
            bandit.learn(ranking, clicks)
    for available, text in [
        ([0, 6], "got 6"),
        ([-1], "got -1"),
        ([1, 1], "each item once"),
        ([True, False], "item numbers"),
    ]:
        with pytest.raises(RankPolicyError, match=text):
            bandit.rank(available)
    np.testing.assert_array_equal(bandit.memory.statistics, before)
    assert bandit.memory.steps[0] == 0
    for settings in (
        {"num_items": 0},
        {"cutoff": 0},
        {"discount": 0.0},
        {"discount": 1.5},
        {"window": 0},
        {"cutoff": 1.5},
    ):
        with pytest.raises(RankPolicyError):
            make(name, **settings)


@pytest.mark.parametrize("name", FREE_OF_ORDER)
def test_late_and_shuffled_feedback_gives_the_same_state(name):
    rounding = 0.0 if name in ADDITIVE else 1e-12
    bandit, late, batch = make(name), make(name), make(name)
    shown = teach(bandit, 40)
    for place in np.random.default_rng(3).permutation(len(shown)):
        late.learn(*shown[place])
    batch.learn_log(*map(np.array, zip(*shown, strict=True)))
    for other in (late, batch):
        np.testing.assert_allclose(other.memory.statistics, bandit.memory.statistics, rtol=0, atol=rounding)
        np.testing.assert_array_equal(other.memory.steps, bandit.memory.steps)
        other.generator = np.random.default_rng(9)
    bandit.generator = np.random.default_rng(9)
    expected = bandit.rank()
    np.testing.assert_array_equal(late.rank(), expected)
    np.testing.assert_array_equal(batch.rank(), expected)


@pytest.mark.parametrize("name", sorted(set(BANDITS) - set(FREE_OF_ORDER)))
def test_bandits_that_depend_on_order_do(name):
    """Else they are to promise more."""
    bandit, late = make(name), make(name)
    for ranking, clicks in reversed(teach(bandit, 40)):
        late.learn(ranking, clicks)
    assert not np.allclose(late.memory.statistics, bandit.memory.statistics)


@pytest.mark.parametrize("name", ADDITIVE)
def test_a_window_knows_the_last_lists_only(name):
    with pytest.raises(RankPolicyError, match="discount or window, not both"):
        make(name, window=5, discount=0.9)
    bandit, fresh = make(name, window=5), make(name)
    shown = teach(bandit, 23)
    for ranking, clicks in shown[-5:]:
        fresh.learn(ranking, clicks)
    np.testing.assert_array_equal(bandit.memory.statistics, fresh.memory.statistics)


@pytest.mark.parametrize("name", ADDITIVE)
def test_a_discount_weighs_lists_by_age(name):
    bandit, single = make(name, discount=0.9), make(name)
    shown = teach(bandit, 12)
    expected = np.zeros_like(bandit.memory.statistics)
    for age, (ranking, clicks) in enumerate(reversed(shown)):
        single.memory.statistics[:] = 0.0
        single.learn(ranking, clicks)
        expected += 0.9**age * single.memory.statistics
    np.testing.assert_allclose(bandit.memory.statistics, expected, atol=1e-12)


@pytest.mark.parametrize("name", sorted(set(BANDITS) - set(ADDITIVE)))
def test_bandits_that_cannot_forget_say_so(name):
    with pytest.raises(RankPolicyError, match="cannot forget"):
        make(name, window=5)


@pytest.mark.parametrize("name", BANDITS)
def test_items_come_and_go(name):
    bandit = make(name)
    teach(bandit, 20)
    known = bandit.memory.statistics.copy()
    np.testing.assert_array_equal(bandit.add_items(2), [6, 7])
    np.testing.assert_array_equal(bandit.memory.statistics[:, :6, : known.shape[2]], known)
    for ranking, _ in teach(bandit, 60, available=[0, 6, 7]):
        assert sorted(ranking.tolist()) == [0, 6, 7]
    bandit.forget_items([0, 7])
    fresh = make(name, num_items=8)
    np.testing.assert_array_equal(bandit.memory.statistics[:, [0, 7]], fresh.memory.statistics[:, [0, 7]])
    kept = list(range(known.shape[2]))
    if bandit.num_columns is None:  # of pairs: (3, 0) is forgotten with 0, and (3, 3) says how the last list was made
        kept = [1, 2, 4, 5]
    np.testing.assert_array_equal(bandit.memory.statistics[:, 3, kept], known[:, 3, kept])
    assert bandit_from_state(bandit.state()).num_items == 8


@pytest.mark.parametrize("name", [name for name in BANDITS if name != "random"])
def test_beats_random_on_the_users_it_is_made_for(name):
    """By a paired test over runs."""
    pytest.importorskip("numba")
    problem = stationary(USERS[BANDITS[name].made_for], 3)
    regrets = simulate([name, "random"], problem, num_steps=4000, num_runs=10, num_threads=1).regrets
    gain = regrets["random"][:, -1] - regrets[name][:, -1]
    assert gain.mean() > 5 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_unknown_bandit():
    with pytest.raises(RankPolicyError, match="Did you mean 'dcm-ts'"):
        bandit_class_named("dcm-tss")
