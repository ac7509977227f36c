"""What is no number, or missing, is never silently a number."""

from decimal import Decimal

import numpy as np
import pandas
import polars
import pytest

import rankpolicy as rp

QID = ["a", "a", "b", "b"]
DAYS = np.array(["2024-01-01", "2024-01-02", "NaT", "2024-01-09"], "datetime64[ns]")


def test_masked_features_are_missing():
    features = np.ma.masked_values([[1.0], [2.0], [-999.0], [4.0]], -999.0)
    np.testing.assert_array_equal(rp.from_arrays(features, qid=QID).features[:, 0], [1, 2, np.nan, 4])
    whole = np.ma.masked_equal([[1], [2], [-9], [4]], -9)
    np.testing.assert_array_equal(rp.from_arrays(whole, qid=QID).features[:, 0], [1, 2, np.nan, 4])
    ranker = rp.LambdaMART(num_trees=2, min_items_in_leaf=1).fit(features, [0, 1, 0, 1], qid=QID, verbose=False)
    np.testing.assert_array_equal(ranker.predict(features), ranker.predict(features.filled(np.nan)))


def test_masked_labels_queries_and_scores_are_refused():
    features, labels = np.zeros((4, 1)), np.ma.masked_equal([0, 1, -1, 1], -1)
    with pytest.raises(rp.RankPolicyError, match=r"labels must be .* row 2 has nan"):
        rp.from_arrays(features, labels, qid=QID)
    with pytest.raises(rp.RankPolicyError, match="qid must hold ids"):
        rp.from_arrays(features, qid=np.ma.masked_equal([1, 1, -1, 2], -1))
    with pytest.raises(rp.RankPolicyError, match="scores"):
        rp.evaluate(labels, rp.from_arrays(features, [0, 1, 0, 1], qid=QID))


@pytest.mark.parametrize("values", [DAYS, DAYS - DAYS[0]])
def test_dates_are_refused_in_arrays_and_frames(values):
    with pytest.raises(rp.RankPolicyError, match=r"features must be numbers.*np.timedelta64\(1, 'D'\)"):
        rp.from_arrays(values[:, None], qid=QID)
    for present in (values, np.where(np.isnat(values), values[0], values)):
        frame = {"qid": QID, "x": present}
        with pytest.raises(rp.RankPolicyError, match=r"'x' must be numbers.*np.timedelta64\(1, 'D'\)"):
            rp.from_frame(pandas.DataFrame(frame), label=None)
        with pytest.raises(rp.RankPolicyError, match=r"'x' must be numbers.*dt.total"):
            rp.from_frame(polars.DataFrame(frame), label=None)
        with pytest.raises(rp.RankPolicyError, match="numbers"):
            rp.Regression(epochs=1).fit(pandas.DataFrame({"x": present}), [0, 1, 0, 1], qid=QID, verbose=False)


def test_the_advice_for_dates_and_decimals_works():
    column = pandas.Series(DAYS)
    days = (column - column.min()) / np.timedelta64(1, "D")
    dataset = rp.from_frame(pandas.DataFrame({"qid": QID, "x": days}), label=None)
    np.testing.assert_array_equal(dataset.features[:, 0], [0, 1, np.nan, 8])
    frame = pandas.DataFrame({"qid": QID, "price": [Decimal("1.5"), Decimal(2), Decimal(3), Decimal(4)]})
    with pytest.raises(rp.RankPolicyError, match=r"'price' must be numbers; got object.*pd.to_numeric\(column\)"):
        rp.from_frame(frame, label=None)
    frame["price"] = pandas.to_numeric(frame["price"])
    assert rp.from_frame(frame, label=None).features[:, 0].tolist() == [1.5, 2, 3, 4]
    with pytest.raises(rp.RankPolicyError, match=r"pd.to_numeric\(column\)"):
        rp.from_arrays(np.array([["1.5"], ["two"], ["3"], ["4"]], object), qid=QID)


@pytest.mark.parametrize("kind", [pandas.DataFrame, polars.DataFrame])
def test_text_is_encoded_where_the_ranker_knows_it_as_categories(kind):
    columns = {"colour": ["red", "blue", "red", "green"] * 5, "x": np.arange(20.0)}
    qid, labels = np.repeat(np.arange(5), 4), [2, 0, 2, 1] * 5
    train = pandas.DataFrame(columns).astype({"colour": "category"})
    text = kind(columns)
    ranker = rp.LambdaMART(num_trees=3, min_items_in_leaf=1)
    ranker.fit(train, labels, qid=qid, eval_set=[(text, labels)], eval_qid=[qid], verbose=False)
    expected = ranker.predict(train)
    assert len(np.unique(expected)) > 1
    np.testing.assert_array_equal(ranker.predict(text), expected)
    np.testing.assert_array_equal(
        np.concatenate(ranker.rank(text, qid=qid)), np.concatenate(ranker.rank(train, qid=qid))
    )
    with pytest.raises(rp.RankPolicyError, match="'colour' must be numbers"):
        rp.Regression(epochs=1).fit(text, labels, qid=qid)
