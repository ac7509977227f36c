"""What is no number, or missing, is never silently a number."""

import datetime
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
    groups = np.ma.masked_equal([0, 1, -1, 1], -1)
    for name, values in (("protected", groups), ("protected", [0, 1, np.nan, 1]), ("item_ids", groups)):
        with pytest.raises(rp.RankPolicyError, match=f"{name} must have a value for every row; 1 of 4 are missing"):
            rp.from_arrays(features, qid=QID, **{name: values})
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
    measured = rp.evaluate(ranker, train, "ndcg", y=labels, qid=qid).means
    assert rp.evaluate(ranker, text, "ndcg", y=labels, qid=qid).means == measured
    assert ranker.score(text, labels, qid=qid) == ranker.score(train, labels, qid=qid)
    assert ranker.explain(text, qid=qid, item=0).base == ranker.explain(train, qid=qid, item=0).base
    importances = [ranker.feature_importance(data, y=labels, qid=qid).importances for data in (text, train)]
    np.testing.assert_array_equal(*importances)
    named = {"label": labels, "qid": qid}
    ranker.fit(train.assign(**named), "label", qid="qid", valid=kind(columns | named), verbose=False)
    np.testing.assert_array_equal(ranker.predict(text), expected)
    with pytest.raises(rp.RankPolicyError, match="'colour' must be numbers"):
        rp.Regression(epochs=1).fit(text, labels, qid=qid)


def test_objects_in_arrays_are_numbers_missing_or_refused():
    missing = [None, np.nan, pandas.NaT, pandas.NA, np.datetime64("NaT")]
    features = np.array([[1.5], *([value] for value in missing), [Decimal("2.5")], [3]], object)
    dataset = rp.from_arrays(features, group=[8])
    np.testing.assert_array_equal(dataset.features[:, 0], [1.5, *[np.nan] * 5, 2.5, 3])
    for time in (DAYS[0], pandas.Timestamp("2024-01-01"), datetime.date(2024, 1, 1)):
        with pytest.raises(rp.RankPolicyError, match=r"features must be numbers.*days since a date"):
            rp.from_arrays(np.array([[1.0], [time]], object), group=[2])
    with pytest.raises(rp.RankPolicyError, match=r"features must be numbers.*Give the days: column"):
        rp.from_arrays(np.array([[1.0], [np.timedelta64(5, "s")]], object), group=[2])


def test_masks_of_a_list_of_rows_are_kept():
    rows = list(np.ma.masked_values([[1.0], [-999.0]], -999.0))
    np.testing.assert_array_equal(rp.from_arrays(rows, group=[2]).features[:, 0], [1, np.nan])


@pytest.mark.parametrize(
    ("column", "advice"),
    [
        ([Decimal("1.5"), None, Decimal(3), Decimal(4)], r"pd.to_numeric\(column\)"),
        ([1, 2, None, 4], r"pd.to_numeric\(column\)"),
        ([datetime.date(2024, 1, 1)] * 3 + [None], "days since a date"),
        ([datetime.timedelta(1)] * 3 + [None], "Give the days: column"),
        (["1.5", None, "2", "3"], "Make it categories"),
    ],
)
def test_columns_of_objects_are_refused_with_advice_that_fits(column, advice):
    frame = pandas.DataFrame({"qid": QID, "x": pandas.Series(column, dtype=object)})
    with pytest.raises(rp.RankPolicyError, match=f"'x' must be numbers; got object.*{advice}"):
        rp.from_frame(frame, label=None)


def test_tables_that_are_no_frames_are_refused():
    frame = polars.DataFrame({"qid": QID, "label": [0, 1, 0, 1], "x": [1.0, 2.0, 3.0, 4.0]})
    for table, message in ((frame.to_arrow(), "polars.from_arrow"), (frame.lazy(), "collect")):
        with pytest.raises(rp.RankPolicyError, match=message):
            rp.Regression(epochs=1).fit(table, "label", qid="qid")
        with pytest.raises(rp.RankPolicyError, match=message):
            rp.evaluate([1.0, 2, 3, 4], table, y="label", qid="qid")
    with pytest.raises(rp.RankPolicyError, match="'x' must be numbers; got Object"):
        rp.from_frame(frame.with_columns(x=polars.Series([object()] * 4, dtype=polars.Object)))
