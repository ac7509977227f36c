"""What comes back is in the order of the rows that were given, however the queries are mixed."""

import numpy as np
import pandas
import polars
import pytest
from typer.testing import CliRunner

import rankpolicy as rp
from rankpolicy.cli.main import app
from rankpolicy.data import from_arrays, from_frame, read_run, split_queries, to_frame, write_run
from rankpolicy.data.arrays import concatenate
from rankpolicy.evaluation.policy_value import SortedPolicy, UniformPolicy, policy_value

RNG = np.random.default_rng(0)
NUM_ROWS = 60
FRAME = pandas.DataFrame(
    {
        "qid": RNG.permutation(np.repeat([f"q{number}" for number in range(10)], 6)),
        "label": RNG.integers(0, 3, NUM_ROWS),
        "group": RNG.choice(["a", "b"], NUM_ROWS),
        "x": RNG.normal(size=NUM_ROWS),
        "y": RNG.normal(size=NUM_ROWS),
    }
)
X, LABELS, QID = FRAME[["x", "y"]], FRAME["label"].to_numpy(), FRAME["qid"].to_numpy()
DATASET = from_frame(FRAME)
ROUNDING = 1e-6  # of products of float32 matrices, which depends on how many rows they have


@pytest.fixture(scope="module")
def ranker():
    return rp.ListNet(model="linear", epochs=3).fit(DATASET)


def test_scores_of_a_dataset_belong_to_the_rows_of_its_frame(ranker) -> None:
    scored = FRAME.assign(score=ranker.predict(DATASET))
    np.testing.assert_allclose(scored["score"], ranker.predict(X))
    np.testing.assert_allclose(scored["score"], ranker.predict(X, qid=QID))


def test_rankings_and_samples_name_the_rows_of_the_frame(ranker) -> None:
    scores = ranker.predict(DATASET)
    for query, rows in zip(DATASET.query_ids, ranker.rank(DATASET), strict=True):
        assert set(FRAME["qid"].iloc[rows]) == {query}
        assert (np.diff(scores[rows]) <= 0).all()
    by_dataset = ranker.sample(DATASET, num_samples=2, random_state=0)
    by_arrays = ranker.sample(X, qid=QID, num_samples=2, random_state=0)
    for ours, theirs in zip(by_dataset, by_arrays, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_exposures_are_of_the_rows(ranker) -> None:
    np.testing.assert_allclose(ranker.exposure(DATASET), ranker.exposure(X, qid=QID))
    for policy in (ranker, UniformPolicy(), SortedPolicy(ranker)):
        value = policy_value(policy, DATASET)
        np.testing.assert_allclose(value.merit, LABELS)
        weights = 1 / np.log2(np.arange(2, 8))
        np.testing.assert_allclose(value.exposure, policy.exposure(DATASET, rank_weights=weights))


def test_protected_groups_are_given_by_row() -> None:
    without = from_frame(FRAME.drop(columns="group"))
    fair = rp.FairLP(relevance="rank-svm", strength=1.0).fit(DATASET)
    given = fair.exposure(without, protected=FRAME["group"].to_numpy())
    np.testing.assert_allclose(given, fair.exposure(DATASET))
    np.testing.assert_allclose(given, fair.exposure(X, qid=QID, protected=FRAME["group"].to_numpy()))


def test_scores_to_evaluate_are_given_by_row(ranker) -> None:
    by_rows = rp.evaluate(FRAME["x"].to_numpy(), DATASET, ["ndcg", "map"])
    by_query = rp.evaluate(FRAME["x"].to_numpy()[DATASET.source_rows_by_query], FRAME_BY_QUERY, ["ndcg", "map"])
    np.testing.assert_allclose(by_rows.values, by_query.values)
    np.testing.assert_allclose(
        rp.evaluate(ranker, DATASET, ["ndcg"]).values, rp.evaluate(ranker.predict(X), DATASET, ["ndcg"]).values
    )


FRAME_BY_QUERY = from_frame(FRAME.iloc[DATASET.source_rows_by_query].reset_index(drop=True))


def test_frames_keep_their_rows() -> None:
    again = to_frame(DATASET)
    assert again["qid"].to_list() == QID.tolist()
    np.testing.assert_allclose(again["x"], FRAME["x"], rtol=1e-6)


def test_parts_keep_the_order_of_their_rows(ranker) -> None:
    part = DATASET[[7, 2, 4]]
    of_frame = FRAME[FRAME["qid"].isin(part.query_ids)]
    of_rows = ranker.predict(of_frame[["x", "y"]])
    np.testing.assert_allclose(ranker.predict(part), of_rows, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_array_equal(np.sort(part.source_rows), of_frame.index)
    np.testing.assert_allclose(part.in_query_order(part.in_row_order(part.labels_by_query)), part.labels_by_query)


def test_joined_parts_have_the_rows_of_the_first_part_first(ranker) -> None:
    parts = split_queries(DATASET, (0.5, 0.5), random_state=0)
    joined = concatenate(parts)
    by_part = np.concatenate([ranker.predict(part) for part in parts])
    np.testing.assert_allclose(ranker.predict(joined), by_part, rtol=ROUNDING, atol=ROUNDING)


def test_a_dataset_that_holds_a_row_twice_is_its_own_order(ranker) -> None:
    drawn = DATASET[[3, 0, 3]]
    np.testing.assert_allclose(ranker.predict(drawn)[:6], ranker.predict(drawn)[12:], rtol=ROUNDING, atol=ROUNDING)


def test_runs_are_written_from_scores_by_row(ranker, tmp_path) -> None:
    scores = ranker.predict(DATASET)
    write_run(DATASET, scores, tmp_path / "run.trec")
    run = read_run(tmp_path / "run.trec")
    for row in range(NUM_ROWS):
        assert run[QID[row]][str(row)] == scores[row]


@pytest.mark.parametrize("sampled", [[], ["--sampled"]])
def test_predict_on_the_command_line_writes_one_score_per_row_of_the_file(ranker, tmp_path, sampled) -> None:
    ranker.save(tmp_path / "model.rp")
    polars.from_pandas(FRAME).write_parquet(tmp_path / "data.parquet")
    scores = {}
    for name in ("scores.txt", "scores.csv", "run.trec"):
        call = ["predict", str(tmp_path / "model.rp"), "--data", str(tmp_path / "data.parquet"), *sampled]
        assert CliRunner().invoke(app, [*call, "--out", str(tmp_path / name)]).exit_code == 0
    scores = np.loadtxt(tmp_path / "scores.txt")
    table = polars.read_csv(tmp_path / "scores.csv")
    assert table["qid"].to_list() == QID.tolist()
    np.testing.assert_allclose(table["score"], scores)
    run = read_run(tmp_path / "run.trec")
    np.testing.assert_allclose([run[QID[row]][str(row)] for row in range(NUM_ROWS)], scores)
    if not sampled:
        np.testing.assert_allclose(scores, ranker.predict(X))


def test_interleaved_rows_are_what_these_tests_are_about() -> None:
    assert (np.diff(DATASET.source_rows_by_query) < 0).any()
    assert from_arrays(X, LABELS, qid=QID).source_rows_by_query.tolist() == DATASET.source_rows_by_query.tolist()


@pytest.mark.parametrize(
    "dataset", [DATASET, DATASET[[7, 2, 4]], FRAME_BY_QUERY[[7, 2, 4]]], ids=["mixed", "part", "reordered"]
)
def test_everything_of_a_dataset_has_the_numbers_of_its_rankings_and_scores(ranker, dataset) -> None:
    """``d.labels[ranker.rank(d)[0]]`` are labels of the first query, and rows of a matrix of ``d.features`` are those of ``d``."""
    scores = ranker.predict(dataset)
    np.testing.assert_allclose(scores, ranker.predict(dataset.features), rtol=ROUNDING, atol=ROUNDING)
    of_rows = FRAME.iloc[dataset.source_rows]
    for number, rows in enumerate(ranker.rank(dataset)):
        assert (dataset.query_of_item[rows] == number).all()
        query = dataset[number]
        assert sorted(dataset.labels[rows]) == sorted(query.labels)
        assert sorted(dataset.groups[rows]) == sorted(query.groups)
        np.testing.assert_allclose(np.sort(dataset.features[rows, 0]), np.sort(query.features[:, 0]))
    if dataset is DATASET:
        np.testing.assert_array_equal(dataset.labels, of_rows["label"])
        np.testing.assert_array_equal(dataset.query_ids[dataset.query_of_item], of_rows["qid"])


def test_what_a_user_writes_reads_rows_in_their_order() -> None:
    class FirstFeature:
        def predict(self, data: rp.RankingDataset) -> np.ndarray:
            return data.features[:, 0]

    np.testing.assert_allclose(
        rp.evaluate(FirstFeature(), DATASET, ["ndcg"]).values, rp.evaluate(FRAME["x"], DATASET, ["ndcg"]).values
    )
    fair = rp.FairLP(relevance="rank-svm", strength=1.0)
    by_function = fair.fit(DATASET, protected=lambda data: data.features[:, 0] > 0).exposure(DATASET)
    by_rows = fair.fit(DATASET, protected=FRAME["x"].to_numpy() > 0).exposure(DATASET)
    np.testing.assert_allclose(by_function, by_rows)


def test_offsets_are_refused_where_they_would_cut_through_queries() -> None:
    np.testing.assert_array_equal(FRAME_BY_QUERY.offsets, FRAME_BY_QUERY.query_offsets)
    with pytest.raises(rp.RankPolicyError, match="query_of_item"):
        _ = DATASET.offsets
    assert not DATASET.labels.flags.writeable
