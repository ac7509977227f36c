"""The simulated log of product search is what it says, and every claim about it can fail."""

import json
import os

import numpy as np
import pytest

from rankpolicy.cli.main import run
from rankpolicy.clicks import click_log_of, estimate_position_bias
from rankpolicy.evaluation import MetricTable
from rankpolicy.types import RankPolicyError
from reproductions.matching_cross import clicks, clicks_results
from reproductions.matching_cross.clicks_results import (
    ARMS,
    CLAIMED,
    CONCATENATION,
    MATCHING_CROSS,
    TRUE_NDCG,
    WEIGHTED_MRR,
    Cost,
    Measured,
)
from reproductions.matching_cross.product_search import (
    HOME,
    NUM_GRADED,
    NUM_POSITIONS,
    PROPENSITIES,
    TRADE,
    Needs,
    _share_found,
    click_chance,
    simulate_search,
)
from reproductions.matching_cross.product_store import store_of, words_of
from reproductions.statements import Verdict

WORDS = [
    f"{first}{second}"
    for first in ("lake", "stone", "river", "cloud", "glass")
    for second in ("saw", "bolt", "lamp", "rug")
]


def small_store():
    """Twenty queries with six graded products each."""
    return store_of(
        [
            (f"{word} kit", f"Brand{number} {word} part {number}", 1 + number % 3)
            for word in WORDS
            for number in range(6)
        ]
    )


@pytest.fixture(scope="module")
def log():
    return simulate_search(small_store(), num_sessions=40_000, num_users=100, random_state=0)


def by_list(values):
    return np.asarray(values).reshape(-1, NUM_POSITIONS)


def test_the_store_joins_titles_that_are_alike_and_keeps_queries_with_enough_grades():
    pairs = [
        ("Angle  bracket", "A &amp; B angle", 1.0),
        ("angle bracket", "A & B  angle", 2.0),
        ("angle bracket", "Bolt", 3.0),
    ]
    store = store_of([*pairs, ("bolt", "Bolt", 3.0)], least_graded=2)
    assert store.queries == ("angle bracket",)
    assert store.titles == ("A & B angle", "Bolt")
    assert store.graded[0].tolist() == [0, 1]
    assert store.grades[0].tolist() == [1.5, 3.0]
    assert store.brands().tolist() == [0, 1]
    with pytest.raises(RankPolicyError, match="none of 2 has"):
        store_of([*pairs, ("bolt", "Bolt", 3.0)])


def test_a_smaller_store_has_the_same_products_of_its_queries():
    store, few = small_store(), small_store().first(3)
    assert few.queries == store.queries[:3]
    for query in range(3):
        assert [few.titles[product] for product in few.graded[query]] == [
            store.titles[product] for product in store.graded[query]
        ]
    assert len(few.titles) == 18


def test_the_production_ranker_sees_which_words_are_found():
    store = small_store()
    shares = _share_found(store, np.array([0, 1]), np.array([[0, 7], [0, 7]]))
    assert shares.tolist() == [[0.5, 0.0], [0.0, 0.5]]
    assert words_of("A 2-in. bolt") == {"a", "2", "in", "bolt"}


def needs(**changes):
    usual = {
        "grade": 3.0,
        "price": 0.5,
        "stars": np.nan,
        "days": 0,
        "has_bought": False,
        "kind": HOME,
        "level": 1,
        "hour": 20,
    }
    return Needs(**{name: np.array([[value]]) for name, value in (usual | changes).items()})


@pytest.mark.parametrize(
    ("changes", "chance"),
    [
        ({}, 0.7 * 0.6),
        ({"kind": TRADE}, 0.8 * 0.6),
        ({"grade": 2.5}, (0.35 + 0.7) / 2 * 0.6),
        ({"grade": 2.5, "kind": TRADE}, (0.1 + 0.8) / 2 * 0.6),
        ({"grade": 0.0}, 0.03 * 0.6),
        ({"price": 0.95, "level": 0}, 0.7 * 0.6 * (1 - 0.7 * 0.8)),
        ({"stars": 3.5}, 0.7 * 0.5),
        ({"stars": 4.5}, 0.7 / (1 + np.exp(-2))),
        ({"days": 3}, 0.7 * 0.6 * 0.9),
        ({"days": 3, "kind": TRADE}, 0.8 * 0.6 * 0.9),
        ({"days": 3, "kind": TRADE, "hour": 6}, 0.8 * 0.6 * 0.3),
        ({"days": 3, "kind": TRADE, "hour": 15}, 0.8 * 0.6 * 0.9),
        ({"has_bought": True}, 0.7 * 0.6 * 1.3),
        ({"has_bought": True, "kind": TRADE, "stars": 5.0}, 0.95),
    ],
)  # fmt: skip
def test_who_clicks_what(changes, chance):
    assert click_chance(needs(**changes))[0, 0] == pytest.approx(chance)


def test_the_same_seed_gives_the_same_log():
    first, second, other = (simulate_search(small_store(), num_sessions=50, random_state=seed) for seed in (3, 3, 4))
    assert np.array_equal(first.clicks.labels, second.clicks.labels)
    assert first.clicks.texts.queries == second.clicks.texts.queries
    assert np.array_equal(first.relevance, second.relevance)
    assert not np.array_equal(first.relevance, other.relevance)


def test_lists_are_seven_different_products_with_the_grades_people_gave(log):
    store, products, grades = small_store(), by_list(log.clicks.texts.of_item), by_list(log.grades)
    queries = [store.queries.index(text) for text in log.clicks.texts.queries]
    for query, shown, graded in zip(queries[:500], products.tolist(), grades.tolist(), strict=False):
        known = dict(zip(store.graded[query].tolist(), store.grades[query].tolist(), strict=True))
        assert len(set(shown)) == NUM_POSITIONS
        assert [known.get(product, 0.0) for product in shown] == graded
        assert sum(product in known for product in shown) == NUM_GRADED
    assert (by_list(log.clicks.shown.ranks) == np.arange(1, NUM_POSITIONS + 1)).all()


def test_half_of_the_sessions_to_measure_on_ask_texts_that_training_does_not(log):
    texts = np.array(log.clicks.texts.queries)
    train, valid, test = (log.part(number) for number in range(3))
    assert [len(part) for part in (train, valid, test)] == [32_000, 4000, 4000]
    assert not log.is_new[train].any()
    for part, other in ((valid, test), (test, valid)):
        is_new = log.is_new[part]
        assert is_new.mean() == pytest.approx(0.5, abs=0.05)
        assert set(texts[part][~is_new]) <= set(texts[train])
        assert not set(texts[part][is_new]) & (set(texts[train]) | set(texts[other]))


def test_clicks_follow_examination_and_relevance(log):
    expected, clicked = by_list(log.relevance) * PROPENSITIES, by_list(log.clicks.labels)
    errors = (clicked - expected).mean(0) / np.sqrt((expected * (1 - expected)).mean(0) / len(expected))
    assert np.abs(errors).max() < 4


@pytest.mark.parametrize("kind", [HOME, TRADE])
def test_better_grades_are_clicked_more_and_by_the_trade_more_steeply(log, kind):
    is_kind = (log.clicks.side.categories["kind"] == ("home", "trade")[kind]) & (log.clicks.shown.ranks == 1)
    rates = [log.clicks.labels[is_kind & (log.grades == grade)].mean() for grade in (1, 2, 3)]
    assert rates[0] < rates[1] < rates[2]
    assert rates[1] / rates[2] == pytest.approx((0.5, 0.125)[kind], rel=0.3)


def test_popular_products_are_shown_first_except_in_randomised_sessions(log):
    reviews, is_randomised = by_list(log.clicks.side.numbers["log_reviews"]), log.is_randomised
    assert reviews[~is_randomised].mean(0)[0] > reviews[~is_randomised].mean(0)[-1] + 1
    of_random = reviews[is_randomised]
    assert np.abs(of_random.mean(0) - of_random.mean()).max() < 4 * of_random.std() / np.sqrt(len(of_random))
    assert is_randomised.mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / len(is_randomised)))


def test_the_bias_is_found_in_the_randomised_sessions(log):
    found = estimate_position_bias(click_log_of(log.clicks[log.is_randomised]), method="randomised", level=0.999)
    assert (found.intervals[1:, 0] <= PROPENSITIES[1:]).all()
    assert (found.intervals[1:, 1] >= PROPENSITIES[1:]).all()


def test_parts_follow_in_time_and_keep_the_truth(log):
    parts = clicks.parts_of(log)
    assert parts.train.shown.times.max() < parts.valid.shown.times.min()
    assert parts.valid.shown.times.max() < parts.test.shown.times.min()
    assert parts.truth.labels == pytest.approx(log.relevance[-parts.truth.num_items :])
    assert (np.add.reduceat(parts.test.labels, parts.test.offsets[:-1]) == 1).all()
    assert parts.valid.query_weights is not None
    numbers = clicks.text_numbers(parts.truth)
    assert len(numbers) == len(parts.is_new) == 4000
    assert len(set(numbers.tolist())) == len(set(parts.truth.texts.queries))


def measured(reciprocal_ranks, weights, ndcg, texts=(0, 1, 2)):
    names = np.array([str(query) for query in range(len(weights))])
    values = np.column_stack([reciprocal_ranks, np.equal(reciprocal_ranks, 1.0)]).astype(float)
    return Measured(
        clicks=MetricTable(query_ids=names, names=("mrr", "success@1"), values=values, query_weights=np.array(weights, float)),
        clicked_texts=np.array(texts),
        truth=MetricTable(query_ids=names, names=("ndcg",), values=np.array(ndcg, float)[:, None]),
        texts=np.array(texts),
        is_new=np.array([True, False, True]),
        propensities=PROPENSITIES,
        valid_score=0.5,
        learning_rate=1e-3,
        epochs=2,
        seconds=1.0,
    )  # fmt: skip


BETTER = [measured([1.0, 0.5, 0.0], [3, 1, 0], [0.9, 0.8, 0.7]), measured([1.0, 1.0, 0.0], [1, 1, 0], [0.9, 0.9, 0.9])]
WORSE = [measured([0.5, 0.5, 0.0], [3, 1, 0], [0.8, 0.7, 0.6]), measured([0.5, 0.5, 0.0], [1, 1, 0], [0.8, 0.8, 0.8])]
COSTS = dict.fromkeys(ARMS, Cost(training=1.0, scoring=0.5, weights=100, activations=10))


def test_gains_are_weighted_within_a_log_and_plain_over_logs():
    found = clicks_results.gain(BETTER, WORSE, WEIGHTED_MRR)
    assert found.mean == pytest.approx((0.5 * 3 / 4 + 0.5) / 2)
    assert found.over_logs == pytest.approx(clicks_results.t_interval([0.375, 0.5]))
    assert clicks_results.gain(BETTER, WORSE, TRUE_NDCG).mean == pytest.approx(0.1)


def test_sessions_of_one_text_are_one_unit():
    # One text: whatever is drawn has the same mean.
    alike = [measured([1.0, 0.5, 0.0], [3, 1, 1], [0.9, 0.8, 0.1], texts=(0, 0, 0))] * 2
    others = [measured([0.0, 0.0, 0.0], [3, 1, 1], [0.0, 0.0, 0.0], texts=(0, 0, 0))] * 2
    found = clicks_results.gain(alike, others, TRUE_NDCG)
    assert found.over_texts == pytest.approx((0.6, 0.6))


def test_a_claim_holds_only_if_both_intervals_lie_above_zero():
    equal = dict.fromkeys(ARMS, BETTER)
    of_equal = clicks_results.outcome(equal, COSTS).claims
    assert [claim.holds for claim in of_equal] == [not claimed.is_better for claimed in CLAIMED for _ in range(2)] + [
        True
    ] * 4
    for number, claimed in enumerate(CLAIMED):
        for ours, theirs, is_better in ((BETTER[1], WORSE[1], True), (WORSE[1], BETTER[1], False)):
            given = equal | {claimed.ours: [ours, ours], claimed.theirs: [theirs, theirs]}
            claims = clicks_results.outcome(given, COSTS).claims
            assert [claim.holds for claim in claims[2 * number : 2 * number + 2]] == [is_better, is_better]
    unsure = clicks_results.Gain((0.05, 0.15), clicks_results.t_interval([0.0, 0.2]))
    assert clicks_results._claim(CLAIMED[0], TRUE_NDCG, unsure).verdict is Verdict.NOT_SHOWN


def test_more_time_or_memory_than_a_tenth_fails_its_claim():
    equal = dict.fromkeys(ARMS, BETTER)
    for name, holds in (("scoring", [True, False, True, True]), ("activations", [True, True, True, False])):
        more = COSTS | {MATCHING_CROSS: COSTS[CONCATENATION]._replace(**{name: 1000})}
        assert [claim.holds for claim in clicks_results.outcome(equal, more).claims[-4:]] == holds


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
    assert len(outcome["claims"]) == 2 * len(CLAIMED) + 4
