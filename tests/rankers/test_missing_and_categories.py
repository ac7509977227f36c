"""Frames as users have them: columns by name, missing values, categories."""

import numpy as np
import pandas
import polars
import pytest

import rankpolicy as rp
from rankpolicy.data import from_frame, read_csv, read_parquet, to_frame, write_parquet
from rankpolicy.data.arrays import concatenate
from rankpolicy.rankers import RANKERS

RNG = np.random.default_rng(0)
NUM_ROWS = 240
COLOURS = np.array(["red", "green", "blue"])
COLOUR = RNG.integers(0, 3, NUM_ROWS)
MISSING = RNG.random(NUM_ROWS) < 0.3
FRAME = pandas.DataFrame(
    {
        "qid": RNG.permutation(np.repeat(np.arange(24), 10)),
        "label": np.where(COLOUR == 1, 2, 0) + MISSING,
        "price": np.where(MISSING, np.nan, RNG.normal(size=NUM_ROWS)),
        "colour": pandas.Categorical(COLOURS[COLOUR]),
        "noise": RNG.normal(size=NUM_ROWS),
    }
)
FEATURES = ["price", "colour", "noise"]
FAST = {
    "pg-rank": {"epochs": 30, "model": "linear", "learning_rate": 0.05},
    "listnet": {"epochs": 30, "model": "linear", "learning_rate": 0.05},
    "rank-svm": {},
    "coordinate-ascent": {},
    "lambdamart": {"num_trees": 20, "min_items_in_leaf": 5},
    "boosted-policy": {"num_trees": 20, "min_items_in_leaf": 5},
}


def fitted(name: str):
    return RANKERS[name](**FAST[name]).fit(from_frame(FRAME))


@pytest.mark.parametrize("name", FAST)
def test_missing_values_and_categories_are_learned_from(name: str, tmp_path) -> None:
    ranker = fitted(name)
    assert rp.evaluate(ranker, from_frame(FRAME), ["ndcg"]).means["ndcg"] > 0.85
    scores = ranker.predict(FRAME[FEATURES], qid=FRAME["qid"])
    ranker.save(tmp_path / "model.rp")
    np.testing.assert_array_equal(rp.load(tmp_path / "model.rp").predict(FRAME[FEATURES], qid=FRAME["qid"]), scores)
    assert ranker.categories_ == {"colour": ["blue", "green", "red"]}


@pytest.mark.parametrize("name", ["listnet", "lambdamart"])
def test_columns_are_matched_by_name_and_categories_by_name(name: str) -> None:
    ranker = fitted(name)
    expected = ranker.predict(FRAME[FEATURES])
    other = FRAME.assign(title="some words")[["title", "noise", "qid", "colour", "price"]]
    np.testing.assert_allclose(ranker.predict(other), expected)
    np.testing.assert_allclose(ranker.predict(polars.from_pandas(other)), expected)
    recoded = other.assign(colour=pandas.Categorical(FRAME["colour"], categories=["violet", "red", "green", "blue"]))
    np.testing.assert_allclose(ranker.predict(recoded), expected)
    np.testing.assert_allclose(ranker.predict(from_frame(other.drop(columns="title"), label=None)), expected)
    with pytest.raises(
        rp.RankPolicyError, match=r"data to rank must have the 3 feature columns .* it has no colour, noise"
    ):
        ranker.predict(FRAME[["price", "qid"]])
    with pytest.raises(rp.RankPolicyError, match="'colour' held categories, here it holds numbers"):
        ranker.predict(FRAME[FEATURES].assign(colour=1.0))


@pytest.mark.parametrize("name", ["listnet", "lambdamart"])
def test_a_category_not_seen_in_training_counts_as_missing(name: str) -> None:
    ranker = fitted(name)
    unseen = FRAME[FEATURES].assign(colour=pandas.Categorical(["violet"] * NUM_ROWS))
    missing = FRAME[FEATURES].assign(colour=pandas.Categorical([None] * NUM_ROWS))
    np.testing.assert_array_equal(ranker.predict(unseen), ranker.predict(missing))


@pytest.mark.parametrize("scaling", ["none", "query_minmax", "standardize", "log1p", "quantile"])
def test_values_missing_only_when_ranking(scaling: str) -> None:
    X, y = RNG.normal(size=(40, 3)), RNG.integers(0, 3, 40)
    ranker = rp.ListNet(model="linear", scaling=scaling, epochs=2).fit(X, y, group=[10] * 4)
    gaps = X.copy()
    gaps[::3, 1] = np.nan
    scores = ranker.predict(gaps, group=[10] * 4)
    assert np.isfinite(scores).all()
    if scaling != "query_minmax":  # there, the other items of the query are scaled by those that have a value
        np.testing.assert_array_equal(
            np.delete(scores, np.s_[::3]), np.delete(ranker.predict(X, group=[10] * 4), np.s_[::3])
        )


def test_a_missing_value_has_an_indicator_beside_the_median() -> None:
    from rankpolicy.data.scaling import fit_scaling

    train = rp.from_arrays([[1.0, 5.0], [3.0, np.nan], [8.0, 7.0], [4.0, 9.0]], group=[4])
    scaled = fit_scaling("none", train).apply(train.features)
    np.testing.assert_array_equal(scaled, [[1, 5, 0], [3, 7, 1], [8, 7, 0], [4, 9, 0]])


def test_infinity_stays_an_error() -> None:
    with pytest.raises(rp.RankPolicyError, match="features must be finite, or NaN where a value is missing; row 1"):
        rp.from_arrays([[1.0], [np.inf]], group=[2])


def test_validation_frames_are_matched_by_name_too() -> None:
    valid = FRAME.assign(title="words")[["noise", "title", "price", "colour"]]
    ranker = rp.ListNet(model="linear", epochs=2).fit(
        FRAME[FEATURES], FRAME["label"], qid=FRAME["qid"], eval_set=[(valid, FRAME["label"])], eval_qid=[FRAME["qid"]]
    )
    assert ranker.best_score_ == pytest.approx(rp.evaluate(ranker, from_frame(FRAME), ["ndcg@10"]).means["ndcg@10"])


def test_files_keep_missing_values_and_categories(tmp_path) -> None:
    dataset = from_frame(FRAME)
    write_parquet(dataset, tmp_path / "data.parquet")
    FRAME.to_csv(tmp_path / "data.csv", index=False)
    to_frame(dataset).write_parquet(tmp_path / "frame.parquet")
    for again in (
        read_parquet(tmp_path / "data.parquet"),
        read_csv(tmp_path / "data.csv"),
        read_parquet(tmp_path / "frame.parquet"),
    ):
        assert again.categories == dataset.categories
        assert again.query_ids.tolist() == dataset.query_ids.tolist()
        np.testing.assert_allclose(again.features_by_query, dataset.features_by_query, rtol=1e-6)


def test_joined_datasets_join_their_categories() -> None:
    reds, others = (FRAME[(FRAME["colour"] == "red") == is_red] for is_red in (True, False))
    parts = [from_frame(part.assign(colour=part["colour"].cat.remove_unused_categories())) for part in (reds, others)]
    joined = concatenate(parts)
    assert joined.categories == {"colour": ("blue", "green", "red")}
    assert to_frame(joined)["colour"].to_list() == [*reds["colour"], *others["colour"]]


def test_text_is_no_category_unless_it_is_said() -> None:
    with pytest.raises(rp.RankPolicyError, match=r"feature column 'colour' must be numbers; .*astype\('category'\)"):
        from_frame(FRAME.astype({"colour": str}))
    assert from_frame(FRAME.astype({"colour": str}), text_is="categories").categories is not None
    assert from_frame(FRAME.astype({"colour": str}), ignore=["colour"]).feature_names == ("price", "noise")
    with pytest.raises(rp.RankPolicyError, match="at most 1000 categories; 'colour' has 1200"):
        from_frame(pandas.DataFrame({"qid": 1, "label": 0, "colour": pandas.Categorical(np.arange(1200))}))
