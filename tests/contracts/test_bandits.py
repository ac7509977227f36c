"""What every bandit promises, over the table of all of them."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.bandits import BANDITS, INDICES, Bandit, IndexBandit
from rankpolicy.bundle import read_bundle, write_bundle
from rankpolicy.declarations.setting_texts import describe_settings
from rankpolicy.kernels.bandits.memory import FEEDBACKS
from rankpolicy.simulation import cascade_user, ccm_user, dbn_user, dcm_user, pbm_user, simulate, stationary, ubm_user
from rankpolicy.types import RankPolicyError

NUM_ITEMS, CUTOFF = 6, 3
ADDITIVE = [name for name, bandit in BANDITS.items() if bandit.is_additive]
FORGETFUL = [name for name in ADDITIVE if name != "random"]  # a bandit that learns nothing has nothing to forget
FREE_OF_ORDER = [name for name, bandit in BANDITS.items() if not bandit.depends_on_order]
ATTRACTION = np.where(np.arange(10) < 3, 0.6, 0.1)  # three good items of ten; users see lists of three
USERS = {
    "cascade": cascade_user(ATTRACTION),
    "dcm": dcm_user(ATTRACTION, [0.7, 0.7, 0.7]),
    "pbm": pbm_user(ATTRACTION, [1.0, 0.5, 0.3]),
    "ubm": ubm_user(ATTRACTION, [[1.0, 0, 0, 0], [0.5, 0.9, 0, 0], [0.3, 0.5, 0.9, 0]]),
    "ccm": ccm_user(ATTRACTION, [0.9, 0.7, 0.3]),
    "dbn": dbn_user(ATTRACTION, np.full(10, 0.7), 0.9),
}


def make(name, **settings):
    return BANDITS.named(name)(**({"num_items": NUM_ITEMS, "cutoff": CUTOFF, "random_state": 1} | settings))


def teach(bandit, num_lists, *, random_state=0, available=None):
    """Feedback from a user who likes small item numbers; returns the lists and clicks."""
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
    bandit.learn(*(np.broadcast_to(values, 2) for values in ([4, 2], [False, True])))  # read-only views are accepted
    assert bandit.memory.steps[0] == 1


def assert_same_decisions(bandit, other):
    assert type(other) is type(bandit)
    for (ranking, clicks), (same, same_clicks) in zip(teach(bandit, 30), teach(other, 30), strict=True):
        np.testing.assert_array_equal(ranking, same)
        np.testing.assert_array_equal(clicks, same_clicks)
    np.testing.assert_array_equal(bandit.memory.statistics, other.memory.statistics)


@pytest.mark.parametrize("name", BANDITS)
def test_a_saved_bandit_decides_as_the_original_would(name, tmp_path):
    bandit = make(name, **({"window": 7} if name in FORGETFUL else {}))
    teach(bandit, 20)
    bandit.save(tmp_path / "bandit.rank")
    assert_same_decisions(bandit, rp.load(tmp_path / "bandit.rank"))
    assert_same_decisions(bandit, Bandit.from_dict(json.loads(json.dumps(bandit.to_dict()))))
    assert_same_decisions(bandit, copy.deepcopy(bandit))


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_every_index_joins_every_feedback(index, feedback, tmp_path):
    bandit = IndexBandit(num_items=NUM_ITEMS, cutoff=CUTOFF, index=index, feedback=feedback)
    for ranking, _ in teach(bandit, 20):
        assert len(set(ranking.tolist())) == CUTOFF
    bandit.save(tmp_path / "bandit.rank")
    assert_same_decisions(bandit, rp.load(tmp_path / "bandit.rank"))
    assert_same_decisions(bandit, IndexBandit.from_dict(bandit.to_dict()))


@pytest.mark.parametrize("name", [*BANDITS, *INDICES])
def test_settings_are_declared_documented_and_refused_elsewhere(name):
    kind = BANDITS[name] if name in BANDITS else INDICES[name]
    required = {"num_items": NUM_ITEMS, "cutoff": CUTOFF} if name in BANDITS else {}
    for described in describe_settings(kind):
        assert described.help, described.name
        assert f"\n{described.name} : " in kind.__doc__
    with pytest.raises(RankPolicyError, match="Did you mean 'num_items'" if name in BANDITS else "has no setting"):
        kind(**required, num_itms=3)
    owners, foreign = "ccm-ucb, ccm-ts, dbn-ucb, dbn-ts", "continuation"
    if name in owners.split(", "):
        owners, foreign = "dcm-ucb1, cascade-ucb1", "radius"
    with pytest.raises(
        RankPolicyError, match=f"{kind.__name__} has no setting '{foreign}'; it is a setting of the bandits {owners}"
    ):
        kind(**required, **{foreign: 1.0})


def test_settings_of_another_index_are_refused():
    with pytest.raises(
        RankPolicyError, match=r"setting of the index kl-ucb. Give it to the index: index=KLUCB\(log_log_weight"
    ):
        IndexBandit(num_items=3, cutoff=2, index="ucb1", log_log_weight=1.0)
    with pytest.raises(
        RankPolicyError, match="UCB1 has no setting 'log_log_weight'; it is a setting of the index kl-ucb"
    ):
        INDICES["ucb1"](log_log_weight=1.0)
    with pytest.raises(RankPolicyError, match=r"discount=0.9 would not be read.*cannot forget"):
        IndexBandit(num_items=3, cutoff=2, index="lin-ts", discount=0.9)
    for index in ("ubc1", 3, make("dcm-ts")):
        with pytest.raises(RankPolicyError, match="Unknown index"):
            IndexBandit(num_items=3, cutoff=2, index=index)
    with pytest.raises(RankPolicyError, match=r"Unknown feedback 'first'. Did you mean"):
        IndexBandit(num_items=3, cutoff=2, index="ucb1", feedback="first")


@pytest.mark.parametrize("name", BANDITS)
def test_documents_of_strangers_are_checked(name):
    bandit = make(name)
    teach(bandit, 5)
    good = bandit.to_dict()

    def changed(**arrays):
        return good | {"arrays": good["arrays"] | arrays}

    shape = np.shape(good["arrays"]["statistics"])
    for document, text in [
        (good | {"bandit": "dcm-tss"}, "Unknown bandit 'dcm-tss'"),
        (good | {"bandit": ["dcm-ts"]}, "Unknown bandit"),
        (good | {"settings": None}, "settings of a bandit must be a mapping"),
        (good | {"settings": good["settings"] | {"cutoff": "3"}}, "cutoff must be a whole number"),
        (good | {"settings": good["settings"] | {"colour": 3}}, "has no setting 'colour'"),
        (good | {"settings": {"cutoff": 3}}, "incomplete"),
        (good | {"arrays": 3}, "as to_dict"),
        (changed(colour=[1.0]), "setting"),
        (changed(statistics=[[[1.0]], [[1.0], [2.0]]]), "in lists of equal lengths"),
        (changed(statistics=np.zeros((1, 1, 1)).tolist()), "must have shape"),
        (changed(statistics=np.full(shape, "a").tolist()), "must hold float64 numbers"),
        (changed(statistics=np.full(shape, np.nan).tolist()), "finite"),
        (changed(steps=[-1]), "at least 0"),
        (changed(steps=[1.5]), "int64"),
        (changed(generator=[1, 2, 3]), "generator must have shape"),
        (changed(generator=[1, 2, 3, 4, 5, 6]), "0 or 1 and a 32-bit number"),
        (
            {**good, "arrays": {key: value for key, value in good["arrays"].items() if key != "steps"}},
            "steps is missing",
        ),
    ]:
        with pytest.raises(RankPolicyError, match=text):
            Bandit.from_dict(document)
    if name in FORGETFUL:
        forgetful = make(name, window=2)
        teach(forgetful, 3)
        wrong = forgetful.to_dict()
        wrong["arrays"]["window_rankings"][0][0] = NUM_ITEMS
        with pytest.raises(RankPolicyError, match="from 0 to 5; got 6"):
            Bandit.from_dict(wrong)
    other = BANDITS["random" if name != "random" else "dcm-ts"]
    with pytest.raises(RankPolicyError, match=r"Bandit.from_dict for any"):
        other.from_dict(good)


def test_files_of_strangers_are_checked(tmp_path):
    path = tmp_path / "bandit.rank"
    make("dcm-ts").save(path)
    manifest, files = read_bundle(path)
    for content, parts, text in [
        ({"bandit": "dcm-tss"}, files, "bandit.rank .*Unknown bandit 'dcm-tss'"),
        (
            {"settings": {"num_items": 7, "cutoff": 3}},
            files,
            r"statistics must have shape \(1, 7, 2\); got \(1, 6, 2\)",
        ),
        ({}, {}, "arrays.safetensors is missing"),
        ({}, {"arrays.safetensors": b"nothing"}, "damaged"),
    ]:
        kept = {key: manifest[key] for key in ("kind", "bandit", "settings")}
        write_bundle(Path(path), kept | content, parts)
        with pytest.raises(RankPolicyError, match=text):
            rp.load(path)


def test_counts_that_no_feedback_leads_to_are_refused():
    for name, table, values, text in [
        ("dcm-ts", 0, [3.0, 2.0], "clicks from 0 to observations"),
        ("dbn-ts", 1, [-1.0, 2.0], "clicks from 0 to observations"),
        ("ranked-exp3", 0, [1.0, 1.5], "propensities from 0 to 1"),
    ]:
        document = make(name).to_dict()
        document["arrays"]["statistics"][table][0] = values
        with pytest.raises(RankPolicyError, match=text):
            Bandit.from_dict(document)
    document = make("bubble-rank").to_dict()
    document["arrays"]["statistics"][1][2][2] = 99.0  # a partner that is no item
    with pytest.raises(RankPolicyError, match="partners"):
        Bandit.from_dict(document)


def test_the_first_list_of_any_bandit_is_ranked_without_torch(tmp_path):
    program = """
import sys
import rankpolicy as rp
made = [kind(num_items=5, cutoff=2) for kind in rp.bandits.BANDITS.values()]
assert "numba" not in sys.modules  # loaded by the first list
for bandit in made:
    bandit.learn(bandit.rank(), [0, 1])
assert rp.bandits.Bandit.from_dict(made[0].to_dict()).memory.steps[0] == 1
made[0].save(sys.argv[1])
rp.load(sys.argv[1])
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program, tmp_path / "bandit.rank"], check=True)


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
    """Otherwise their docstrings should promise more."""
    bandit, late = make(name), make(name)
    for ranking, clicks in reversed(teach(bandit, 40)):
        late.learn(ranking, clicks)
    assert not np.allclose(late.memory.statistics, bandit.memory.statistics)


@pytest.mark.parametrize("name", FORGETFUL)
def test_a_window_knows_the_last_lists_only(name):
    with pytest.raises(RankPolicyError, match="discount or window, not both"):
        make(name, window=5, discount=0.9)
    bandit, fresh = make(name, window=5), make(name)
    shown = teach(bandit, 23)
    for ranking, clicks in shown[-5:]:
        fresh.learn(ranking, clicks)
    np.testing.assert_array_equal(bandit.memory.statistics, fresh.memory.statistics)


@pytest.mark.parametrize("name", FORGETFUL)
def test_a_discount_weighs_lists_by_age(name):
    bandit, single = make(name, discount=0.9), make(name)
    shown = teach(bandit, 12)
    expected = np.zeros_like(bandit.memory.statistics)
    for age, (ranking, clicks) in enumerate(reversed(shown)):
        single.memory.statistics[:] = 0.0
        single.learn(ranking, clicks)
        expected += 0.9**age * single.memory.statistics
    np.testing.assert_allclose(bandit.memory.statistics, expected, atol=1e-12)


@pytest.mark.parametrize("name", sorted(set(BANDITS) - set(FORGETFUL)))
def test_bandits_that_cannot_forget_say_so(name):
    with pytest.raises(RankPolicyError, match="cannot forget"):
        make(name, window=5)
    with pytest.raises(RankPolicyError, match="cannot forget"):
        make(name, discount=0.9)


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
    if bandit.num_columns is None:  # of pairs: (3, 0) is forgotten with 0, and (3, 3) describes the last list
        kept = [1, 2, 4, 5]
    np.testing.assert_array_equal(bandit.memory.statistics[:, 3, kept], known[:, 3, kept])
    assert Bandit.from_dict(bandit.to_dict()).num_items == 8


@pytest.mark.parametrize("name", [name for name in BANDITS if name != "random"])
def test_beats_random_on_the_users_it_is_made_for(name):
    """A paired test over runs."""
    pytest.importorskip("numba")
    problem = stationary(USERS[BANDITS[name].made_for], 3)
    regrets = simulate([name, "random"], problem, num_steps=4000, num_runs=10, executor="serial").regrets
    gain = regrets["random"][:, -1] - regrets[name][:, -1]
    assert gain.mean() > 5 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_unknown_bandit():
    with pytest.raises(RankPolicyError, match="Did you mean 'dcm-ts'"):
        BANDITS.named("dcm-tss")
