import itertools
from dataclasses import replace

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.clicks import (
    ClickEvidence,
    dataset_from_clicks,
    doubly_robust_relevance,
    ips_weights,
    log_from_lists,
    one_click_each,
    weighted_by_propensity,
)
from rankpolicy.data.click_table.list_columns import Shown

PROPENSITIES = np.array([1.0, 0.5, 0.25])
# Rows in another order than the names, so that nothing matches by accident.
DATA = rp.from_arrays(
    np.arange(10.0).reshape(-1, 1),
    np.full(10, 4.0),  # never read
    qid=["b", "b", "b", "a", "a", "a", "c", "c", "d", "d"],
    item_ids=["z", "x", "y", "x", "y", "w", "x", "y", "x", "z"],
)
LISTS = [
    ("a", ["x", "y", "w"], [0, 1, 0], 1),
    ("a", ["w", "x", "y"], [1, 0, 1], 2),
    ("b", ["z", "y", "x"], [0, 0, 1], 1),
    ("b", ["z", "y"], [0, 0], 3),
    ("a", ["x", "y", "w"], [0, 1, 0], 4),
    ("c", ["x", "y"], [0, 0], 1),
    ("e", ["q"], [1], 5),  # a query the dataset does not have
]
LOG = log_from_lists(*(list(column) for column in list(zip(*LISTS, strict=True))[:3]), counts=[row[3] for row in LISTS])


def labels_by_name(dataset, query=0):
    rows = slice(dataset.offsets[query], dataset.offsets[query + 1])
    return dict(zip(dataset.item_ids[rows].tolist(), dataset.labels[rows].tolist(), strict=True))


def test_relevances_by_hand():
    learned = dataset_from_clicks(DATA, LOG, PROPENSITIES)
    evidence = learned.click_evidence
    assert learned.label_kind == "relevances"
    assert learned.query_ids.tolist() == ["b", "a"]  # the dataset's order
    assert learned.query_weights.tolist() == [4, 7]
    # b: x was clicked once at rank 3 of four sessions; a: y five times at rank 2 and twice at rank 3 of seven, w twice at rank 1
    assert labels_by_name(learned, 0) == pytest.approx({"z": 0, "x": 4 / 4, "y": 0})
    assert labels_by_name(learned, 1) == pytest.approx({"x": 0, "y": (5 * 2 + 2 * 4) / 7, "w": 2 / 7})
    np.testing.assert_array_equal(learned.features[:, 0], [0, 1, 2, 3, 4, 5])
    weights = np.repeat([2.0, 4.0, 1.0, 4.0], [5, 2, 2, 1])
    assert evidence == ClickEvidence(
        weighted="item",
        num_sessions=12,
        num_clicks=10,
        effective_sample_size=pytest.approx(weights.sum() ** 2 / (weights**2).sum()),
        queries_left_out={"not in the log": 1, "no click": 1},
        sessions_left_out={"query not in the dataset": 5},
    )


def test_sessions_by_hand():
    learned = dataset_from_clicks(DATA, LOG, PROPENSITIES, by="query")
    evidence = learned.click_evidence
    assert learned.label_kind == "clicks"
    assert learned.query_ids.tolist() == ["b", "a", "a"]
    assert labels_by_name(learned, 0) == {"z": 0, "x": 1, "y": 0}
    # Five equal sessions of weight 2, and two whose clicks at ranks 1 and 3 weigh (1 + 4) / 2.
    sessions = {tuple(labels_by_name(learned, query).items()): learned.query_weights[query] for query in (1, 2)}
    assert sessions == {
        (("x", 0.0), ("y", 1.0), ("w", 0.0)): 10.0,
        (("x", 0.0), ("y", 1.0), ("w", 1.0)): 5.0,
    }
    assert learned.query_weights[0] == 4.0
    weights = np.repeat([2.0, 2.5, 4.0], [5, 2, 1])
    assert evidence.effective_sample_size == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert (evidence.num_sessions, evidence.num_clicks) == (8, 10)
    assert evidence.queries_left_out == {"not in the log": 1, "no click": 1}
    assert evidence.sessions_left_out == {"query not in the dataset": 5, "no click": 4}


def random_log(num_sessions=400, seed=0):
    """Sessions of DATA's queries: some or all items in random order, clicked at random."""
    generator = np.random.default_rng(seed)
    queries, lists, clicks = [], [], []
    for _ in range(num_sessions):
        query = generator.integers(DATA.num_queries)
        names = DATA.item_ids[DATA.offsets[query] : DATA.offsets[query + 1]]
        shown = generator.permutation(names)[: generator.integers(1, len(names) + 1)]
        queries.append(DATA.query_ids[query])
        lists.append(shown.tolist())
        clicks.append((generator.random(len(shown)) < 0.4).astype(int).tolist())
    return log_from_lists(queries, lists, clicks, counts=generator.integers(1, 4, num_sessions).tolist())


@pytest.mark.parametrize("clip", [None, 2.5])
@pytest.mark.parametrize("by_session", [False, True])
def test_a_linear_reward_is_its_mean_over_sessions(clip, by_session):
    """sum_q w_q sum_i label_i / log2(1 + rank_i) = sum over sessions, clicks and weights, one by one."""
    log = random_log()
    table = np.random.default_rng(1).uniform(0.2, 1.0, (len(log), 3)) if by_session else PROPENSITIES
    learned = dataset_from_clicks(DATA, log, table, clip=clip)
    evidence = learned.click_evidence
    scores = np.random.default_rng(2).normal(size=DATA.num_items)
    value_of = {}
    for query in range(DATA.num_queries):
        rows = np.arange(DATA.offsets[query], DATA.offsets[query + 1])
        for rank, row in enumerate(rows[np.argsort(-scores[rows])], 1):
            value_of[str(DATA.query_ids[query]), str(DATA.item_ids[row])] = 1 / np.log2(1 + rank)
    total, weights = 0.0, []
    for session in range(len(log)):
        for position in range(log.num_positions):
            if log.clicks[session, position]:
                propensity = table[session, position] if by_session else table[position]
                weight = 1 / propensity if clip is None else min(1 / propensity, clip)
                name = log.query_names[log.queries[session]], log.item_names[log.items[session, position]]
                total += log.counts[session] * weight * value_of[name]
                weights += [weight] * log.counts[session]
    table_of_means = rp.evaluate(
        scores[np.isin(DATA.query_ids, learned.query_ids)[DATA.query_of_item]],
        learned,
        ["dcg"],
        conventions=rp.Conventions(gain="linear"),
    )
    assert (table_of_means["dcg"] * learned.query_weights).sum() == pytest.approx(total, rel=1e-6)
    assert evidence.effective_sample_size == pytest.approx(sum(weights) ** 2 / np.square(weights).sum())
    assert evidence.num_clicks == len(weights)
    given = ips_weights(log, table, clip=clip)
    assert evidence.num_clipped == given.num_clipped
    assert evidence.clipped_share == pytest.approx(given.clipped_share, abs=1e-12)


@pytest.mark.parametrize("clip", [None, 1.7])
def test_sessions_carry_the_weights_of_ips_weights(clip):
    log = random_log()
    learned = dataset_from_clicks(DATA, log, PROPENSITIES, by="query", clip=clip)
    evidence = learned.click_evidence
    given = ips_weights(log, PROPENSITIES, by="query", clip=clip)
    assert learned.query_weights.sum() == pytest.approx(log.counts @ given.weights)
    assert evidence.effective_sample_size == pytest.approx(given.effective_sample_size)
    assert (evidence.num_clipped, evidence.num_sessions) == (given.num_clipped, given.num_weights)
    by_key = {}
    for session in range(len(log)):
        items = frozenset(log.item_names[item] for item in log.items[session][log.clicks[session] == 1])
        if items:
            key = log.query_names[log.queries[session]], items
            by_key[key] = by_key.get(key, 0.0) + log.counts[session] * given.weights[session]
    found = {
        (
            str(learned.query_ids[query]),
            frozenset(name for name, label in labels_by_name(learned, query).items() if label),
        ): weight
        for query, weight in enumerate(learned.query_weights)
    }
    assert found == pytest.approx(by_key)


def test_trust_is_taken_off_every_item_that_was_shown():
    trust = np.array([0.3, 0.2, 0.1])
    learned = dataset_from_clicks(DATA, LOG, PROPENSITIES, trust=trust)
    evidence = learned.click_evidence
    # b: z was shown four times at rank 1 and never clicked; x once at rank 3; y four times at rank 2
    assert labels_by_name(learned, 0) == pytest.approx({"z": 0, "x": (1 - 0.1) / 0.25 / 4, "y": 0})
    # a: y at rank 2 five times, at rank 3 twice, always clicked; w at rank 3 five times, at rank 1 twice, clicked there
    of_y = (5 * (1 - 0.2) / 0.5 + 2 * (1 - 0.1) / 0.25) / 7
    of_w = (5 * -0.1 / 0.25 + 2 * (1 - 0.3)) / 7
    assert of_w < 0
    assert labels_by_name(learned, 1) == pytest.approx({"x": 0, "y": of_y, "w": 0})
    # z and y of b, x and w of a, x and y of c
    assert evidence.num_below_zero == 6
    assert evidence.queries_left_out == {"not in the log": 1, "no relevance above 0": 1}


@pytest.mark.parametrize("clip", [None, 1.5])
def test_doubly_robust_labels(clip):
    predicted = np.linspace(0.1, 1.0, DATA.num_items)
    learned = dataset_from_clicks(DATA, LOG, PROPENSITIES, predicted=predicted, clip=clip)
    evidence = learned.click_evidence
    # Query a: x at rank 1 five times and at rank 2 twice, never clicked; w at ranks 3 and 1; y as above.
    shown = np.array([[5.0, 2, 0], [0, 5, 2], [2, 0, 5]])
    clicks = np.array([[0.0, 0, 0], [0, 5, 2], [2, 0, 0]])
    expected = doubly_robust_relevance(
        shown,
        clicks,
        predicted[3:6],
        propensities=PROPENSITIES,
        num_sessions=np.full(3, 7.0),
        clip=None if clip is None else 1 / clip,
    )
    rows = learned.offsets[learned.query_ids.tolist().index("a")] + np.arange(3)
    np.testing.assert_allclose(learned.labels[rows], np.maximum(expected, 0), rtol=1e-6)
    assert ("c" in learned.query_ids) == (
        clip is not None
    )  # without a click its predictions cancel, unless weights are clipped
    assert evidence.num_clipped == (0 if clip is None else 10)  # mean propensities of y, w and x: 3/7, 13/28 and 1/16


def test_clicks_that_cannot_be_used_are_named():
    without_ids = replace(DATA, item_ids_by_query=None)
    strange = log_from_lists(["a"], [["x", "nobody"]], [[0, 1]])
    wrong = [
        (lambda: dataset_from_clicks(without_ids, LOG, PROPENSITIES), "no item_ids"),
        (lambda: dataset_from_clicks(DATA, strange, PROPENSITIES), "'nobody' of query 'a' is not"),
        (lambda: dataset_from_clicks(DATA, LOG.of_query("e"), PROPENSITIES), "none is. The log begins with"),
        (lambda: dataset_from_clicks(DATA, LOG.of_query("c"), PROPENSITIES), "at least one click"),
        (lambda: dataset_from_clicks(DATA, LOG, PROPENSITIES[:2]), "rank 3 was clicked, and there are 2"),
        (lambda: dataset_from_clicks(DATA, LOG, np.array([1, np.nan, 0.3])), "rank 2 has nan"),
        (lambda: dataset_from_clicks(DATA, LOG, np.ones((3, 3))), "one row for each of the 7 of the log"),
        (lambda: dataset_from_clicks(DATA, LOG, None), "propensities of 1: np.ones"),
        (lambda: dataset_from_clicks(DATA, LOG, PROPENSITIES, by="both"), "by 'item' or by 'query'; got 'both'"),
        (lambda: dataset_from_clicks(DATA, LOG, PROPENSITIES, clip=0), "largest weight"),
        (lambda: dataset_from_clicks(DATA, LOG, PROPENSITIES, by="query", trust=PROPENSITIES), "need by='item'"),
        (lambda: dataset_from_clicks(DATA, LOG, np.ones((7, 3)), trust=PROPENSITIES), "the same for all"),
        (lambda: dataset_from_clicks(DATA[[0, 1, 1]], LOG, PROPENSITIES), "must be unique; 'a' occurs twice"),
        (
            lambda: dataset_from_clicks(replace(DATA, item_ids_by_query=np.full(10, "x")), LOG, PROPENSITIES),
            "unique within a query",
        ),
        (lambda: dataset_from_clicks(DATA, replace(LOG, has_sessions=False), PROPENSITIES), "whole sessions"),
        (lambda: dataset_from_clicks(DATA, DATA, PROPENSITIES), "must be a ClickLog"),
        (lambda: dataset_from_clicks(replace(DATA, query_weights=np.ones(4)), LOG, PROPENSITIES), "weights already"),
    ]
    for call, message in wrong:
        with pytest.raises(rp.RankPolicyError, match=message):
            call()


def test_items_that_were_only_shown_may_be_unknown():
    log = log_from_lists(["a"], [["nobody", "y"]], [[0, 1]])
    learned = dataset_from_clicks(DATA, log, PROPENSITIES)
    assert labels_by_name(learned) == {"x": 0, "y": 2, "w": 0}
    learned = dataset_from_clicks(DATA, log, PROPENSITIES, trust=np.array([0.4, 0.1, 0.0]))
    assert labels_by_name(learned)["y"] == pytest.approx(0.9 / 0.5)


TABLE = replace(
    rp.from_arrays(np.arange(7.0).reshape(-1, 1), [0, 1, 1, 0, 0, 0, 1], group=[3, 2, 2]),
    shown_by_query=Shown(ranks=np.array([1, 3, 2, 1, 2, 2, 1])),
)


def test_click_tables_by_query_and_by_item():
    weighted = weighted_by_propensity(TABLE, PROPENSITIES)
    evidence = weighted.click_evidence
    assert weighted.label_kind == "clicks"
    assert weighted.query_ids.tolist() == ["0", "2"]
    assert weighted.query_weights.tolist() == [3.0, 1.0]  # clicks at ranks 3 and 2, then at rank 1
    assert evidence == ClickEvidence(
        weighted="query",
        num_sessions=2,
        num_clicks=3,
        effective_sample_size=pytest.approx(16 / 10),
        queries_left_out={"no click": 1},
    )
    by_item = weighted_by_propensity(TABLE, PROPENSITIES, by="item", clip=3.0)
    evidence = by_item.click_evidence
    assert by_item.label_kind == "relevances"
    assert by_item.labels.tolist() == [0, 3, 2, 0, 1]
    assert by_item.query_weights is None
    assert (evidence.num_clipped, evidence.clipped_share) == (1, pytest.approx(1 / 7))
    twice = replace(TABLE, query_weights=np.array([2.0, 1.0, 1.0]))
    assert weighted_by_propensity(twice, PROPENSITIES).query_weights.tolist() == [6.0, 1.0]
    by_list = np.array([[1, 1, 0.1], [1, 1, 1], [0.2, 1, 1]])
    assert weighted_by_propensity(TABLE, by_list).query_weights.tolist() == [5.5, 5.0]


def test_click_tables_that_cannot_be_used_are_named():
    for call, message in [
        (
            lambda: weighted_by_propensity(replace(TABLE, shown_by_query=None), PROPENSITIES),
            "ranks items were shown at",
        ),
        (
            lambda: weighted_by_propensity(replace(TABLE, labels_by_query=TABLE.labels_by_query * 2), PROPENSITIES),
            "clicks, 0 or 1",
        ),
        (
            lambda: weighted_by_propensity(replace(TABLE, labels_by_query=TABLE.labels_by_query * 0), PROPENSITIES),
            "at least one click",
        ),
        (lambda: weighted_by_propensity(TABLE, PROPENSITIES[:2]), "rank 3 was clicked, and there are 2"),
        (lambda: weighted_by_propensity(weighted_by_propensity(TABLE, PROPENSITIES), PROPENSITIES), "weighted already"),
    ]:
        with pytest.raises(rp.RankPolicyError, match=message):
            call()


def test_a_click_at_a_time_the_weighted_mean_is_that_of_the_relevances():
    """By enumeration of all clicks on one list of the position-based model, several clicks in a session included."""
    bias, relevance, reciprocal_ranks = (
        np.array([1.0, 0.5, 0.25]),
        np.array([0.2, 0.6, 0.9]),
        np.array([1 / 3, 1.0, 0.5]),
    )
    lists = [marks for marks in itertools.product((0, 1), repeat=3) if any(marks)]
    chances = [np.prod(np.where(marks, bias * relevance, 1 - bias * relevance)) for marks in lists]
    table = replace(
        rp.from_arrays(np.zeros((21, 1)), np.ravel(lists), group=[3] * 7),
        shown_by_query=Shown(ranks=np.tile([1, 2, 3], 7)),
        query_weights=np.array(chances),
    )
    each = weighted_by_propensity(one_click_each(table), bias)
    means = rp.evaluate(np.tile(reciprocal_ranks, each.num_queries), each, ["mrr"]).means
    assert means["mrr"] == pytest.approx(relevance @ reciprocal_ranks / relevance.sum())
    by_query = weighted_by_propensity(table, bias)
    assert rp.evaluate(np.tile(reciprocal_ranks, 7), by_query, ["mrr"]).means["mrr"] != pytest.approx(
        means["mrr"], abs=0.01
    )


@pytest.mark.parametrize("given", ["bias.json", ["a", "b"], {1: 0.5}, [[1.0], [1.0, 0.5]]])
def test_propensities_that_are_no_numbers(given):
    with pytest.raises(
        rp.RankPolicyError, match=r"propensities must be a PositionBias or numbers; got .*read_position_bias"
    ):
        dataset_from_clicks(DATA, LOG, given)


def test_a_trust_for_every_rank():
    with pytest.raises(
        rp.RankPolicyError, match=r"trust must have the shape \(position,\), .* each of the 3 ranks; got \(1,\)"
    ):
        dataset_from_clicks(DATA, LOG, PROPENSITIES, trust=np.array([0.1]))
