"""The simulated log of personal search is what it says, and every claim about it can fail."""

import json
import os

import numpy as np
import pytest

from rankpolicy.cli.main import run
from rankpolicy.clicks import estimate_position_bias, log_from_lists
from rankpolicy.data.texts.glove import WordVectors
from rankpolicy.data.texts.question_answering import from_texts
from rankpolicy.evaluation import MetricTable
from rankpolicy.types import RankPolicyError
from reproductions.matching_cross import clicks, clicks_results
from reproductions.matching_cross.clicks_results import (
    ARMS,
    CLAIMED,
    FULL,
    TRUE_NDCG,
    WEIGHTED_MRR,
    Measured,
)
from reproductions.matching_cross.search_store import NUM_AREAS, areas_of, store_of
from reproductions.matching_cross.simulated_search import (
    ANSWER,
    FOLLOW,
    IS_OWN,
    KINDS,
    LOOK_UP,
    NUM_POSITIONS,
    ON_TOPIC,
    OTHER,
    PROPENSITIES,
    Needs,
    Typed,
    click_chance,
    simulate_search,
)

WORDS = ("lake", "stone", "river", "cloud", "glass", "paper", "metal", "cotton", "silver", "copper")


def small_store():
    """Ten articles of four sentences; each question has the word of its own article and that of the next."""
    pairs = list(zip(WORDS, WORDS[1:] + WORDS[:1], strict=True))
    queries = [f"how does the {word} touch a {other}" for word, other in pairs]
    items = [[f"{word} fact number{fact} of {word}s" for fact in range(4)] for word in WORDS]
    return store_of([from_texts(queries, items, [[0, 1, 0, 0]] * len(WORDS))])


@pytest.fixture(scope="module")
def log():
    return simulate_search(small_store(), num_sessions=30_000, num_users=100, random_state=0)


def by_list(values):
    return values.reshape(-1, NUM_POSITIONS)


def test_the_store_tells_answers_others_and_items_alike():
    store = small_store()
    assert [store.vocabulary[word] for word in store.questions[0]] == ["lake", "touch", "stone"]
    assert store.answers[0].tolist() == [1]
    assert store.others[0].tolist() == [0, 2, 3]
    assert store.alike[0].tolist() == [4, 5, 6, 7]  # the stone's


def test_items_are_the_beginnings_of_sentences():
    dataset = from_texts(["lake stone"] * 2, [["lake stone a b", "lake x", "stone y"]] * 2, [[1, 0, 0]] * 2)
    assert store_of([dataset], words_of_an_item=3).texts[0] == "lake stone a"


def test_a_store_without_a_question_to_ask_is_refused():
    with pytest.raises(RankPolicyError, match="none of 1 has them"):
        store_of([from_texts(["lake"], [["lake", "stone"]], [[1, 0]])])


def needs(**changes):
    usual = {
        "match": OTHER,
        "kind": 0,
        "terms": 0.0,
        "age": 7.0,
        "opens": 0,
        "intent": LOOK_UP,
        "device": 0,
        "hour": 20,
    }
    return Needs(**{name: np.array([[value]]) for name, value in (usual | changes).items()})


@pytest.mark.parametrize(
    ("changes", "logit"),
    [
        ({}, -3.5),
        ({"match": ANSWER}, -3.5 + 1),
        ({"match": ON_TOPIC, "terms": 1 / 3}, -3.5 + 0.5 + 3),
        ({"match": ANSWER, "terms": 1 / 3, "kind": KINDS.index("photo")}, -3.5 + 0.3 * 4 + 0.5),
        ({"match": ANSWER, "intent": FOLLOW}, -3.5 + 1 + 2 * 0.5),
        ({"intent": FOLLOW, "age": 0.0}, -3.5 + 2 * 0.3),
        ({"kind": KINDS.index("sheet"), "device": 1, "opens": 2}, -3.5 + 0.4 * np.log(3) - 1),
        ({"kind": KINDS.index("document"), "hour": 9}, -3.0),
        ({"kind": KINDS.index("document"), "hour": 17}, -3.5),
    ],
)
def test_who_clicks_what(changes, logit):
    assert click_chance(needs(**changes))[0, 0] == pytest.approx(1 / (1 + np.exp(-logit)))


def test_a_team_is_at_home_in_three_areas():
    assert (IS_OWN.sum(1) == 3).all()


def test_areas_are_clusters_of_word_vectors():
    words = tuple(f"{'ab'[group]}{number}" for group in range(2) for number in range(40))
    centres = np.repeat([[1.0, 0.0], [0.0, 1.0]], 40, axis=0)
    vectors = WordVectors(words, (centres + np.random.default_rng(0).normal(0, 0.01, centres.shape)).astype(np.float32))
    areas = areas_of([*words, "unheard"], vectors)
    assert not set(areas[:40].tolist()) & set(areas[40:80].tolist())
    assert np.array_equal(areas_of(words, None), areas_of(words, None))
    assert 0 <= areas[80] < NUM_AREAS


def test_terms_are_words_that_the_item_has():
    store = small_store()
    lake, touch, stone = (store.vocabulary.index(word) for word in ("lake", "touch", "stone"))
    typed = Typed(session=np.array([0, 0, 0, 1]), word=np.array([lake, touch, stone, stone]), num_sessions=2)
    assert typed.texts(store).tolist() == ["lake touch stone", "stone"]
    items = np.array([[0, 4], [0, 4]])  # the lake's first, the stone's first
    assert typed.share_found(store, items).tolist() == [[1 / 3, 1 / 3], [0, 1]]
    counted = np.array([True, True, False, True])
    assert typed.share_found(store, items, counted=counted).tolist() == [[1 / 3, 0], [0, 1]]


def test_the_same_seed_gives_the_same_log():
    first, second, other = (simulate_search(small_store(), num_sessions=50, random_state=seed) for seed in (3, 3, 4))
    assert all(
        np.array_equal(first.columns[name], second.columns[name], equal_nan=name == "log_age") for name in first.columns
    )
    assert not np.array_equal(first.relevance, other.relevance)


def test_lists_are_six_different_items_from_the_top(log):
    texts = by_list(log.columns["item_text"])
    assert all(len(set(row)) == NUM_POSITIONS for row in texts[:2000].tolist())
    assert (by_list(log.columns["position"]) == np.arange(1, NUM_POSITIONS + 1)).all()
    assert (np.diff(log.columns["timestamp"]) >= 0).all()


def test_clicks_follow_examination_and_relevance(log):
    expected = by_list(log.relevance) * PROPENSITIES
    clicked = by_list(log.columns["clicked"])
    errors = (clicked - expected).mean(0) / np.sqrt((expected * (1 - expected)).mean(0) / len(expected))
    assert np.abs(errors).max() < 4


def test_production_shows_relevant_items_first_and_randomised_sessions_do_not(log):
    is_randomised = by_list(log.columns["is_randomised"])[:, 0]
    relevance = by_list(log.relevance)
    assert relevance[~is_randomised].mean(0)[0] > 1.2 * relevance[~is_randomised].mean(0)[-1]
    of_random = relevance[is_randomised]
    assert np.abs(of_random.mean(0) - of_random.mean()).max() < 4 * of_random.std() / np.sqrt(len(of_random))
    assert is_randomised.mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / len(is_randomised)))


def test_the_bias_is_found_in_the_randomised_sessions(log):
    is_randomised = by_list(log.columns["is_randomised"])[:, 0]
    queries, items, marks = (
        by_list(log.columns[name])[is_randomised] for name in ("query_text", "item_text", "clicked")
    )
    found = estimate_position_bias(
        log_from_lists(queries[:, 0].tolist(), items.tolist(), marks.tolist()), method="randomised", level=0.999
    )
    assert (found.intervals[1:, 0] <= PROPENSITIES[1:]).all()
    assert (found.intervals[1:, 1] >= PROPENSITIES[1:]).all()
    assert found.propensities[-1] < 0.3


def test_side_columns_tell_the_past_only(log):
    assert set(clicks.SIDE) == set(log.columns) - {
        "session", "user", "timestamp", "query_text", "item_text", "position", "clicked", "is_randomised",
    }  # fmt: skip
    user = log.columns["user"][::NUM_POSITIONS]
    before = np.expm1(log.columns["log_user_clicks"][::NUM_POSITIONS])
    of_session = by_list(log.columns["clicked"]).sum(1)
    rows = np.flatnonzero(user == user[0])
    assert before[rows] == pytest.approx(np.cumsum(of_session[rows]) - of_session[rows])


def test_a_tenth_of_the_ages_is_missing_whatever_is_clicked(log):
    is_missing, clicked = np.isnan(log.columns["log_age"]), log.columns["clicked"] == 1
    assert is_missing.mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / len(is_missing)))
    assert is_missing[clicked].mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / clicked.sum()))


def test_parts_follow_in_time_and_keep_the_truth(log):
    parts = clicks.parts_of(log)
    assert parts.train.shown.times.max() < parts.valid.shown.times.min()
    assert parts.valid.shown.times.max() < parts.test.shown.times.min()
    assert parts.truth.num_queries == pytest.approx(3000, abs=5)
    assert parts.truth.labels == pytest.approx(log.relevance[-parts.truth.num_items :])
    assert (np.add.reduceat(parts.test.labels, parts.test.offsets[:-1]) == 1).all()
    assert parts.valid.query_weights is not None
    assert set(parts.train.side.names) == set(clicks.SIDE)


def measured(reciprocal_ranks, weights, ndcg):
    names = np.array([str(query) for query in range(len(weights))])
    values = np.column_stack([reciprocal_ranks, np.equal(reciprocal_ranks, 1.0)]).astype(float)
    return Measured(
        clicks=MetricTable(query_ids=names, names=("mrr", "success@1"), values=values, query_weights=np.array(weights, float)),
        truth=MetricTable(query_ids=names, names=("ndcg",), values=np.array(ndcg, float)[:, None]),
        propensities=PROPENSITIES,
        valid_score=0.5,
        learning_rate=1e-3,
        seconds=1.0,
    )  # fmt: skip


BETTER = [measured([1.0, 0.5, 0.0], [3, 1, 0], [0.9, 0.8, 0.7]), measured([1.0, 1.0, 0.0], [1, 1, 0], [0.9, 0.9, 0.9])]
WORSE = [measured([0.5, 0.5, 0.0], [3, 1, 0], [0.8, 0.7, 0.6]), measured([0.5, 0.5, 0.0], [1, 1, 0], [0.8, 0.8, 0.8])]


def test_gains_are_weighted_within_a_log_and_plain_over_logs():
    found = clicks_results.gain(BETTER, WORSE, WEIGHTED_MRR)
    assert found.mean == pytest.approx((0.5 * 3 / 4 + 0.5) / 2)
    assert found.over_logs == pytest.approx(clicks_results.t_interval(np.array([0.375, 0.5])))
    assert clicks_results.gain(BETTER, WORSE, TRUE_NDCG).mean == pytest.approx(0.1)


def test_a_claim_holds_only_if_both_intervals_lie_above_zero():
    equal = dict.fromkeys(ARMS, BETTER)
    assert not any(claim.holds for claim in clicks_results.outcome(equal).claims)
    for part, without in CLAIMED.items():
        claims = clicks_results.outcome(equal | {without: [WORSE[1], WORSE[1]], FULL: [BETTER[1], BETTER[1]]}).claims
        assert [claim.holds for claim in claims if claim.claim.startswith(part)] == [True, True]
    uneven = clicks_results.Gain(0.1, (0.05, 0.15), (-0.01, 0.21))
    assert not uneven.is_positive


@pytest.mark.skipif(
    "RANKPOLICY_DATA" not in os.environ, reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)
def test_smoke(tmp_path):
    assert run(["reproduce", "matching-cross/clicks", "--smoke", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "rows.csv",
        "reproduce.json",
        "run.json",
        "gains.png",
        "gains.svg",
    }
    outcome = json.loads((tmp_path / "reproduce.json").read_text())
    assert [row["arm"] for row in outcome["rows"]] == list(ARMS)
    assert all(0 < row[WEIGHTED_MRR] < 1 and 0 < row[TRUE_NDCG] <= 1 for row in outcome["rows"])
    assert len(outcome["claims"]) == 6
