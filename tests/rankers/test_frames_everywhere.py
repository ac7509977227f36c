"""Frames and arrays wherever data is taken: labels and queries as arrays or as names of columns, with the same words."""

import bz2

import numpy as np
import pandas
import polars
import pytest

import rankpolicy as rp

GENERATOR = np.random.default_rng(0)
QID = np.tile([3, 1, 2, 7], 10)  # the queries are interleaved
X = GENERATOR.normal(size=(40, 3)).astype(np.float32)
Y = GENERATOR.integers(0, 3, 40)
COLUMNS = {
    "search": QID,
    "grade": Y,
    "item_id": [f"i{row}" for row in range(40)],
    "bm25": X[:, 0],
    "age": X[:, 1],
    "clicks": X[:, 2],
}
FEATURES = ["bm25", "age", "clicks"]
FRAMES = pytest.mark.parametrize(
    "frame", [pandas.DataFrame(COLUMNS), polars.DataFrame(COLUMNS)], ids=["pandas", "polars"]
)
DATASET = rp.from_arrays(X, Y, qid=QID, feature_names=FEATURES)


def new_ranker():
    return rp.ListNet(epochs=2, num_networks=1, model="linear")


@FRAMES
def test_fit_takes_labels_and_queries_as_columns_or_arrays(frame):
    expected = new_ranker().fit(DATASET, valid=DATASET, progress=False)
    for fitted in (
        new_ranker().fit(frame, "grade", qid="search", valid=frame, progress=False),
        new_ranker().fit(
            frame, y="grade", qid="search", eval_set=[(frame, "grade")], eval_qid=["search"], progress=False
        ),
        new_ranker().fit(
            frame.drop(columns="grade") if isinstance(frame, pandas.DataFrame) else frame.drop("grade"),
            Y,
            qid="search",
            valid=DATASET,
            progress=False,
        ),
        new_ranker().fit(frame[FEATURES], Y, qid=QID, valid=DATASET, progress=False),
    ):
        assert fitted.feature_names_ == FEATURES
        assert fitted.best_score_ == expected.best_score_
        np.testing.assert_array_equal(fitted.predict(frame), expected.predict(DATASET))
        assert fitted.score(frame, "grade", qid="search") == expected.score(DATASET)


@FRAMES
def test_evaluate_takes_scores_frames_and_columns(frame):
    ranker = new_ranker().fit(DATASET, progress=False)
    scores, expected = ranker.predict(DATASET), rp.evaluate(ranker, DATASET)
    with_title = (
        frame.assign(title="words")
        if isinstance(frame, pandas.DataFrame)
        else frame.with_columns(title=polars.lit("words"))
    )
    sorted_rows = np.argsort(QID, kind="stable")
    for table in (
        rp.evaluate(scores, Y, qid=QID),
        rp.evaluate(scores, frame, y="grade", qid="search"),
        rp.evaluate(ranker, with_title, y="grade", qid="search"),
        rp.evaluate(ranker, frame, y=Y, qid=QID),
        rp.evaluate(ranker, X, y=Y, qid=QID),
        rp.evaluate(scores[sorted_rows], Y[sorted_rows], group=[10, 10, 10, 10]),
    ):
        assert table.means == pytest.approx(expected.means)
    assert rp.evaluate(scores, Y, qid=QID).query_ids.tolist() == ["3", "1", "2", "7"]


@FRAMES
def test_a_frame_without_queries_is_one_query(frame):
    ranker = new_ranker().fit(DATASET, progress=False)
    query = frame[QID == 3] if isinstance(frame, pandas.DataFrame) else frame.filter(polars.Series(QID == 3))
    (order,) = ranker.rank(query)
    np.testing.assert_array_equal(order, np.argsort(-ranker.predict(query), kind="stable"))
    assert len(ranker.sample(query, random_state=0)) == 1
    assert len(ranker.rank(frame, qid="search")) == 4
    expected = ranker.explain(DATASET, query=3, item=int(np.flatnonzero(QID == 3)[order[0]]))
    first = ranker.explain(query, background=DATASET)
    named = ranker.explain(query, item=str(query["item_id"].to_numpy()[order[0]]), background=DATASET)
    among = ranker.explain(frame, qid="search", query=3, item=str(query["item_id"].to_numpy()[order[0]]))
    for explanation in (first, named, among):
        np.testing.assert_allclose(explanation.values, expected.values)


@FRAMES
def test_importance_is_measured_on_a_frame(frame):
    ranker = new_ranker().fit(DATASET, progress=False)
    expected = ranker.feature_importance(DATASET).importances
    np.testing.assert_array_equal(ranker.feature_importance(frame, y="grade", qid="search").importances, expected)


def test_a_bare_pair_is_a_list_of_one_pair():
    expected = new_ranker().fit(DATASET, eval_set=[(X, Y)], eval_qid=[QID], progress=False)
    for options in ({"eval_qid": [QID]}, {"eval_qid": QID}, {"eval_qid": QID.tolist()}):
        fitted = new_ranker().fit(DATASET, eval_set=(X, Y), progress=False, **options)
        assert fitted.evals_result_ == expected.evals_result_
    lists = new_ranker().fit(DATASET, eval_set=(np.asarray(X).tolist(), list(Y)), eval_qid=list(QID), progress=False)
    assert lists.evals_result_ == expected.evals_result_
    grouped = new_ranker().fit(DATASET, eval_set=(X, Y), eval_group=[20, 20], progress=False)
    assert (
        grouped.evals_result_
        == new_ranker().fit(DATASET, eval_set=[(X, Y)], eval_group=[[20, 20]], progress=False).evals_result_
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda frame: new_ranker().fit(frame, "grad", qid="search"), "must have the label column 'grad'"),
        (lambda frame: new_ranker().fit(frame, "grade"), "exactly one of qid .* and group"),
        (lambda frame: new_ranker().fit(X, "grade", qid=QID), "y='grade' would be a column of a frame"),
        (lambda frame: rp.evaluate(Y, frame, qid="search"), "labels must be named: y="),
        (lambda frame: rp.evaluate(Y, frame, y="grade", qid="serch"), "qid='serch' must be a column"),
        (lambda frame: rp.evaluate(Y, DATASET, qid=QID), "knows its labels and queries"),
        (lambda frame: rp.evaluate(Y, Y), "dataset must be a RankingDataset"),
        (
            lambda frame: new_ranker().fit(frame[FEATURES], Y, qid=QID, valid=frame),
            "where y and qid are names of its columns",
        ),
    ],
)
def test_what_is_missing_is_named(call, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        call(pandas.DataFrame(COLUMNS))


def test_trees_have_what_users_of_lightgbm_look_for(tmp_path):
    ranker = rp.LambdaMART(num_trees=8, min_items_in_leaf=2).fit(DATASET, valid=DATASET, progress=False)
    np.testing.assert_allclose(ranker.feature_importances_, ranker.feature_importance(method="gain").importances)
    np.testing.assert_array_equal(ranker.booster_.predict(X), ranker.predict(X))
    assert not hasattr(new_ranker(), "booster_")
    with pytest.raises(AttributeError, match=r"ranker\.feature_importance\(data\)"):
        _ = new_ranker().feature_importances_
    path = tmp_path / "rows.csv.bz2"
    path.write_bytes(bz2.compress(pandas.DataFrame(COLUMNS).to_csv(index=False).encode()))
    read = rp.data.read_csv(path, qid="search", label="grade")
    np.testing.assert_allclose(ranker.predict(read), ranker.predict(X), rtol=1e-6)
