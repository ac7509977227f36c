import numpy as np
import pandas
import polars
import pytest
from scipy import sparse

import rankpolicy as rp
from rankpolicy.rankers.inputs import dense_blocks

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.tile([0, 1, 2], 4)
QID = np.repeat([0, 1, 2, 3], 3)
NAMES = ["bm25", "age", "clicks"]


def new_ranker(**settings):
    return rp.ListNet(epochs=1, model=rp.models.MLP(hidden=(4,)), **settings)


@pytest.mark.parametrize("frame", [pandas.DataFrame(X, columns=NAMES), polars.DataFrame(X, schema=NAMES)])
def test_columns_of_a_frame_are_matched_by_name(frame, tmp_path):
    ranker = new_ranker().fit(frame, Y, qid=QID)
    ranker.save(tmp_path / "model.rp")
    for each in (ranker, rp.load(tmp_path / "model.rp")):
        np.testing.assert_array_equal(each.predict(frame), each.predict(X))
        np.testing.assert_array_equal(each.predict(frame[["age", "bm25", "clicks"]]), each.predict(X))
        with pytest.raises(rp.RankPolicyError, match=r"it has no clicks\. It has bm25, age, spam"):
            each.predict(pandas.DataFrame(X, columns=["bm25", "age", "spam"]))


def test_validation_columns_are_matched_to_the_training_columns():
    frame = pandas.DataFrame(X, columns=NAMES)
    ranker = new_ranker().fit(frame, Y, qid=QID, eval_set=[(frame[NAMES[::-1]], Y)], eval_qid=[QID])
    same = new_ranker().fit(frame, Y, qid=QID, eval_set=[(frame, Y)], eval_qid=[QID])
    assert ranker.best_score_ == same.best_score_
    with pytest.raises(rp.RankPolicyError, match=r"eval_set: it must have the 3 feature columns .* it has no bm25"):
        new_ranker().fit(frame, Y, qid=QID, eval_set=[(frame[["age", "clicks"]], Y)], eval_qid=[QID])


def test_columns_that_pandas_numbered_have_no_names():
    assert new_ranker().fit(pandas.DataFrame(X), Y, qid=QID).feature_names_ is None


def test_a_column_of_text_is_named():
    frame = pandas.DataFrame(X, columns=NAMES).assign(title="some words")
    with pytest.raises(rp.RankPolicyError, match=r"column 'title' must be numbers; .* Make it categories"):
        new_ranker().fit(frame, Y, qid=QID)
    nullable = pandas.DataFrame(X, columns=NAMES).round().astype("Int64")
    assert new_ranker().fit(nullable, Y, qid=QID).is_fitted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1.0, 2.0], [3.0]], "got rows of different lengths"),
        (None, "a frame or a RankingDataset; got NoneType"),
        ("train.txt", "got str. Files are read with read_letor"),
    ],
)
def test_what_is_no_matrix_is_named(given, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        new_ranker().fit(X, Y, qid=QID).predict(given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eval_qid": [QID]}, "give eval_set="),
        ({"eval_group": [[12]]}, "give eval_set="),
        ({"eval_set": [(X, Y, QID)], "eval_qid": [QID]}, "one pair of features and labels"),
        (
            {"eval_set": [(np.full_like(X, np.inf), Y)], "eval_qid": [QID]},
            "eval_set: features must be finite, or NaN .* row 0",
        ),
        ({"checkpoint": "."}, "checkpoint must name a file; . is a directory"),
    ],
)
def test_options_of_fit_that_cannot_be_meant(options, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        new_ranker().fit(X, Y, qid=QID, **options)


def test_options_of_the_policy_that_cannot_be_meant():
    ranker = new_ranker().fit(X, Y, qid=QID)
    for num_samples in (0, -1, 1.5):
        with pytest.raises(rp.RankPolicyError, match="num_samples must be a whole number, 1 or more"):
            ranker.sample(X, qid=QID, num_samples=num_samples)
    for cutoff in (0, -1):
        with pytest.raises(rp.RankPolicyError, match="cutoff must be a whole number, 1 or more"):
            ranker.exposure(X, qid=QID, cutoff=cutoff)
    for weights in ([np.nan], [[1.0]]):
        with pytest.raises(rp.RankPolicyError, match="rank_weights must be finite numbers, one per rank"):
            ranker.exposure(X, qid=QID, rank_weights=weights)


def test_a_sparse_matrix_is_scored_in_blocks_of_rows():
    ranker = new_ranker().fit(sparse.csr_matrix(X), Y, qid=QID)
    np.testing.assert_allclose(ranker.predict(sparse.coo_matrix(X)), ranker.predict(X))
    blocks = list(dense_blocks(sparse.csr_matrix(X), cells_per_block=10))
    assert [len(block) for block in blocks] == [3, 3, 3, 3]
    np.testing.assert_allclose(np.concatenate(blocks), X, rtol=1e-6)
