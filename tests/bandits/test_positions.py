"""Where the k-th best item goes: `positions` of every index bandit, as an order or as v."""

import itertools
import json

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.bandits import BANDITS, Bandit, DcmKLUCB, IndexBandit, QueryBandit, kl_ucb
from rankpolicy.bandits.index import AnyIndexBandit
from rankpolicy.clicks import fit_click_model, log_from_lists
from rankpolicy.types import RankPolicyError

INDEX_BANDITS = [name for name, kind in BANDITS.items() if issubclass(kind, AnyIndexBandit) and not kind.learns_order]
NUM_ITEMS, CUTOFF = 6, 4
V = (0.2, 0.9, 0.4, 0.7)  # position 1 first, then 3, 2 and 0


def make(name, **settings):
    return BANDITS[name](num_items=NUM_ITEMS, cutoff=CUTOFF, random_state=3, **settings)


def taught(name, **settings):
    """A bandit that has learned from thirty lists, and what it would show next."""
    bandit, generator = make(name, **settings), np.random.default_rng(8)
    for _ in range(30):
        ranking = generator.permutation(NUM_ITEMS)[:CUTOFF]
        bandit.learn(ranking, (generator.random(CUTOFF) < 0.8 / (1 + ranking)).astype(int))
    return bandit


def satisfied(attraction, termination):
    """f(A, w, v) = 1 - prod (1 - v(k) w(a_k))."""
    return 1 - np.prod(1 - np.asarray(termination) * attraction)


@pytest.mark.parametrize("name", INDEX_BANDITS)
@pytest.mark.parametrize("positions", [V, np.array(V), (1, 3, 2, 0), [1, 3, 2, 0]])
def test_the_best_item_goes_where_v_is_largest(name, positions):
    best_first, placed = taught(name), taught(name, positions=positions)
    np.testing.assert_array_equal(
        placed.memory.statistics, best_first.memory.statistics
    )  # users still scan from the top
    ranking, by_index = placed.rank(), best_first.rank()
    promise = dict(zip(by_index.tolist(), [0.9, 0.6, 0.35, 0.1], strict=True))
    best = max(itertools.permutations(promise), key=lambda order: satisfied([promise[item] for item in order], V))
    assert ranking.tolist() == list(best)


def test_kl_ucb_maximises_what_its_indices_promise():
    """By enumeration of all lists, not only of the orders of the chosen items."""
    bandit = taught("dcm-kl-ucb", positions=V)
    clicks, observations = bandit.memory.statistics[0].T
    threshold = np.log(31) + 3 * np.log(np.log(31))
    indices = kl_ucb(clicks / observations, threshold / observations)
    best = max(itertools.permutations(range(NUM_ITEMS), CUTOFF), key=lambda order: satisfied(indices[list(order)], V))
    assert bandit.rank().tolist() == list(best)


@pytest.mark.parametrize("name", INDEX_BANDITS)
def test_descending_v_changes_nothing(name):
    generator, bandits = np.random.default_rng(1), [make(name), make(name, positions=(0.9, 0.6, 0.6, 0.1))]
    for _ in range(40):
        ranking, same = (bandit.rank() for bandit in bandits)
        np.testing.assert_array_equal(ranking, same)
        clicks = (generator.random(CUTOFF) < 0.8 / (1 + ranking)).astype(int)
        for bandit in bandits:
            bandit.learn(ranking, clicks)
    np.testing.assert_array_equal(bandits[0].memory.statistics, bandits[1].memory.statistics)
    assert bandits[0].generator.random() == bandits[1].generator.random()


def test_by_hand():
    bandit = DcmKLUCB(num_items=3, cutoff=3, positions=(2, 0, 1))
    bandit.learn_log([[0, 1, 2]] * 4, [[0, 1, 1], [0, 0, 1], [0, 1, 1], [0, 0, 1]])  # means 0, 1/2, 1
    assert bandit.rank().tolist() == [1, 0, 2]  # the best at position 2, the second at 0
    assert bandit.rank([0, 1]).tolist() == [1, 0]  # of two positions, 0 comes before 1
    assert DcmKLUCB(num_items=3, cutoff=3, positions=(0.1, 0.0, 0.9)).positions == (2, 0, 1)
    some = DcmKLUCB(num_items=3, cutoff=3, positions=(0.1, 0.9))  # position 2 gets the third item
    some.learn_log([[0, 1, 2]] * 4, [[0, 1, 1], [0, 0, 1], [0, 1, 1], [0, 0, 1]])
    assert some.rank().tolist() == [1, 2, 0]


def test_files_keep_the_order(tmp_path):
    bandit = taught("dcm-ts", positions=V)
    bandit.save(tmp_path / "bandit.rank")
    copies = [rp.load(tmp_path / "bandit.rank"), Bandit.from_dict(json.loads(json.dumps(bandit.to_dict())))]
    expected = bandit.rank().tolist()
    assert [(copy.positions, copy.rank().tolist()) for copy in copies] == [((1, 3, 2, 0), expected)] * 2
    mine = IndexBandit(num_items=NUM_ITEMS, cutoff=CUTOFF, index="ts", positions=np.array(V))
    assert IndexBandit.from_dict(mine.to_dict()).positions == (1, 3, 2, 0)


def test_one_bandit_per_query_takes_the_order(tmp_path):
    names = np.array(["a", "b", "c"])
    queries = QueryBandit(
        bandit="dcm-kl-ucb-log", cutoff=3, bandit_settings={"positions": np.array([0.1, 0.2, 0.9])}, random_state=0
    )
    queries.learn_log(["q"] * 4, [names] * 4, [[0, 1, 1], [0, 0, 1], [0, 1, 1], [0, 0, 1]])
    assert queries.rank("q", names).tolist() == ["a", "b", "c"]
    queries.save(tmp_path / "queries.rank")
    assert rp.load(tmp_path / "queries.rank").rank("q", names).tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("positions", "text"),
    [
        ((0, 1, 1, 2), "each once"),
        ((1, 2, 3, 4), "numbers from 0 on"),
        ((0, 1, 2, 3, 4), "at most 4"),
        ((0.1, 0.2, 0.3, 0.4, 0.5), "at most 4"),
        ((), "at most 4"),
        ((0.1, 0.2, np.nan, 0.3), "decimals"),
        ("best", "decimals"),
    ],
)
def test_other_positions_are_refused(positions, text):
    with pytest.raises(RankPolicyError, match=text):
        make("dcm-ts", positions=positions)
    with pytest.raises(RankPolicyError, match="best_last or positions"):
        make("dcm-ts", positions=V, best_last=True)


def test_a_fitted_click_model_gives_the_order():
    generator = np.random.default_rng(0)
    lists, clicks, stop = [], [], (0.2, 0.8, 0.5)
    for _ in range(4000):
        shown, marks = generator.permutation(5)[:3], np.zeros(3, int)
        for k in range(3):
            marks[k] = generator.random() < 0.3 + 0.1 * shown[k]
            if marks[k] and generator.random() < stop[k]:
                break
        lists.append([str(item) for item in shown])
        clicks.append(marks)
    log = log_from_lists(["q"] * 4000, lists, clicks)
    values = fit_click_model("dcm", log).position_values(3)
    np.testing.assert_allclose(values[:2], stop[:2], atol=0.08)
    assert make("dcm-ts", positions=fit_click_model("dcm", log).position_values(4)).positions[0] == 1
    for model in ("pbm", "ubm"):
        fitted = fit_click_model(model, log)
        examination = fitted.parameters["examination"]
        expected = examination if model == "pbm" else examination[:, 0]
        np.testing.assert_allclose(fitted.position_values(3), expected)
    assert len(set(fit_click_model("dbn", log).position_values(3))) == 1  # the best item goes to the top
