"""Metrics whose means count queries by their weights."""

import json
from dataclasses import replace

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.data.click_table.list_columns import Shown
from rankpolicy.evaluation import MetricTable, bootstrap_interval, compare_tables

# Three lists of two items; clicked at rank 1, at rank 2, not at all.
TABLE = replace(
    rp.from_arrays(np.zeros((6, 1)), [1, 0, 0, 1, 0, 0], group=[2, 2, 2]),
    shown_by_query=Shown(ranks=np.array([1, 2] * 3)),
)
SCORES = np.array([2.0, 1.0, 2.0, 1.0, 2.0, 1.0])  # the order in which they were shown
BIAS = np.array([1.0, 0.25])


def test_weighted_mrr_by_hand():
    table = rp.evaluate(SCORES[:4], rp.weighted_by_propensity(TABLE, BIAS), ["mrr", "success@1"])
    # Reciprocal ranks 1 and 1/2 of weights 1 and 4.
    assert table.means == pytest.approx({"mrr": (1 + 4 * 0.5) / 5, "success@1": 1 / 5})
    assert table.num_counted == {"mrr": 2, "success@1": 2}
    assert table.effective_sample_size == pytest.approx(25 / 17)
    assert "means are weighted: 2 queries, equivalent to 1.5 of equal weight" in str(table)
    assert table.to_dict()["weighted"] == {"effective_sample_size": pytest.approx(25 / 17)}
    assert "weighted mrr 0.6000" in repr(table)
    assert table.to_trec().endswith("mrr\tall\t0.6000\nsuccess@1\tall\t0.2000\n")


def test_without_weights_nothing_is_said_of_them():
    table = rp.evaluate(SCORES, TABLE, ["mrr"])
    assert table.means == {"mrr": 0.5}
    assert table.effective_sample_size is None
    assert "weight" not in str(table) + json.dumps(table.to_dict()) + repr(table)


def test_weights_of_the_dataset_count():
    table = rp.evaluate(SCORES, replace(TABLE, query_weights=np.array([3.0, 1.0, 0.0])), ["mrr"])
    assert table.means["mrr"] == pytest.approx((3 + 0.5) / 4)


def test_the_interval_resamples_queries_with_their_weights():
    generator = np.random.default_rng(0)
    values, weights = generator.random(400), generator.exponential(size=400)
    weights[:10] = 0
    low, high = bootstrap_interval(values, query_weights=weights)
    mean = weights @ values / weights.sum()
    # The variance of a ratio of sums, to first order.
    error = np.sqrt(np.square(weights * (values - mean)).sum()) / weights.sum()
    assert (low, high) == pytest.approx((mean - 1.96 * error, mean + 1.96 * error), abs=0.15 * error)
    values[:10] = 99.0  # of weight 0
    assert bootstrap_interval(values, query_weights=weights) == (low, high)
    assert bootstrap_interval(values[10:]) == pytest.approx(
        bootstrap_interval(values[10:], query_weights=np.full(390, 0.3))
    )


def test_what_cannot_be_weighted_is_named():
    with pytest.raises(rp.RankPolicyError, match="ranks items were shown at"):
        rp.weighted_by_propensity(replace(TABLE, shown_by_query=None), BIAS)
    with pytest.raises(rp.RankPolicyError, match="rank 2 was clicked, and there are 1"):
        rp.weighted_by_propensity(TABLE, BIAS[:1])
    with pytest.raises(rp.RankPolicyError, match="weighted already"):
        rp.weighted_by_propensity(rp.weighted_by_propensity(TABLE, BIAS), BIAS)
    with pytest.raises(rp.RankPolicyError, match="query_weights must have one value per query"):
        MetricTable(query_ids=np.arange(2), names=("ap",), values=np.ones((2, 1)), query_weights=np.ones(3))
    weighted = rp.evaluate(SCORES[:4], rp.weighted_by_propensity(TABLE, BIAS), ["mrr"])
    with pytest.raises(rp.RankPolicyError, match="do not support query weights"):
        compare_tables({"a": weighted, "b": weighted})


def test_estimated_relevances_are_gains():
    relevances = rp.weighted_by_propensity(TABLE, BIAS, by="item")
    linear = rp.Conventions(gain="linear")
    # Relevances 1 at the first rank of one list, 4 at the second of the other.
    found = rp.evaluate(SCORES[:4], relevances, ["dcg"], conventions=linear)["dcg"]
    np.testing.assert_allclose(found, [1.0, 4 / np.log2(3)])
    with pytest.raises(rp.RankPolicyError, match=r"gain 'exp2'. Pass conventions=Conventions\(gain='linear'\)"):
        rp.evaluate(SCORES[:4], relevances, ["dcg"])
    with pytest.raises(rp.RankPolicyError, match=r"rr asks which items are relevant.*by='query'"):
        rp.evaluate(SCORES[:4], relevances, ["mrr"], conventions=linear)
