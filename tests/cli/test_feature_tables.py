"""CSV and Parquet of features on the command line: columns by name, text as categories, empty fields as missing values."""

import numpy as np
import polars
import pytest

import rankpolicy as rp
from rankpolicy.data import read_csv

RNG = np.random.default_rng(0)
NUM_ROWS = 120
TABLE = polars.DataFrame(
    {
        "search": RNG.permutation(np.repeat(np.arange(12), 10)),
        "title": [f"offer {row}" for row in range(NUM_ROWS)],
        "grade": RNG.integers(0, 3, NUM_ROWS),
        "price": [None if row % 7 == 0 else float(row % 11) for row in range(NUM_ROWS)],
        "brand": RNG.choice(["a", "b", "c"], NUM_ROWS),
        "gender": RNG.choice(["f", "m"], NUM_ROWS),
    }
)
COLUMNS = ["--qid", "search", "--label", "grade", "--ignore", "title", "--protected", "gender"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    TABLE.write_csv(folder / "items.csv")
    TABLE.write_parquet(folder / "items.parquet")
    TABLE.select("brand", "search", "gender", "title", "price").write_csv(folder / "new.csv")
    return folder


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("method", ["lambdamart", "listnet"])
def test_train_evaluate_and_predict(rankpolicy, tables, tmp_path, suffix, method) -> None:
    model, data = tmp_path / "model.rp", tables / f"items.{suffix}"
    fast = {"lambdamart": "num_trees=5", "listnet": "epochs=2"}[method]
    call = ["train", "--method", method, "--data", data, "--out", model, "--set", fast, *COLUMNS]
    result = rankpolicy(*map(str, [*call, "--valid", tables / "items.csv"]))
    assert result.status == 0, result.stderr
    ranker = rp.load(model)
    assert ranker.feature_names_ == ["price", "brand"]
    assert ranker.categories_ == {"brand": ["a", "b", "c"]}
    dataset = (
        read_csv(data, qid="search", label="grade", ignore=["title"], protected="gender") if suffix == "csv" else None
    )
    measured = rankpolicy("evaluate", str(model), "--data", str(data), "--json", *COLUMNS)
    assert measured.status == 0, measured.stderr
    if dataset is not None:
        assert dataset.groups is not None
        assert measured.json["metrics"]["map"]["mean"] == rp.evaluate(ranker, dataset, ["map"]).means["map"]
    out = tmp_path / "scores.csv"
    predicted = rankpolicy(
        "predict", str(model), "--data", str(tables / "new.csv"), "--qid", "search", "--out", str(out)
    )
    assert predicted.status == 0, predicted.stderr
    scores = polars.read_csv(out)
    assert scores["qid"].to_list() == TABLE["search"].to_list()
    expected = ranker.predict(TABLE.with_columns(polars.col("brand").cast(polars.Categorical)), qid=TABLE["search"])
    np.testing.assert_allclose(scores["score"], expected)


def test_errors_name_the_columns(refused, tables, tmp_path) -> None:
    data, out = str(tables / "items.csv"), str(tmp_path / "model.rp")
    call = ["train", "--method", "lambdamart", "--data", data, "--out", out]
    assert "must have the qid column 'qid'; it has search, title" in refused(*call)
    message = refused(*call, "--qid", "search", "--label", "grade", "--ignore", "tittle")
    assert "the columns to ignore must be in the frame; it has no tittle" in message


def test_compare_reads_columns_by_name(rankpolicy, tables):
    call = [
        "compare",
        "--executor",
        "processes:1",
        "--data",
        tables / "items.csv",
        "--folds",
        2,
        "--methods",
        "lambdamart",
        "--no-tune",
    ]
    result = rankpolicy(*call, "--set", "num_trees=2", "--json", *COLUMNS)
    assert result.status == 0, result.stderr
    assert sum(result.json["queries"]) == 12


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tradeoff_reads_columns_by_name(rankpolicy, tables, tmp_path, suffix):
    call = [
        "tradeoff",
        "--data",
        tables / f"items.{suffix}",
        "--methods",
        "fair-pg-rank",
        "--set",
        "epochs=1",
        "--executor",
        "processes:1",
    ]
    result = rankpolicy(*call, "--strengths", "0,1", *COLUMNS, "--out", tmp_path, "--json")
    assert result.status == 0, result.stderr
    assert len(result.json["curves"]["fair-pg-rank"]) == 2
    assert result.json["run"]["options"]["qid"] == "search"


def test_columns_of_a_run_file(rankpolicy, refused, tables, tmp_path):
    config, model = tmp_path / "run.toml", tmp_path / "model.rp"
    keys = f'method = "lambdamart"\ndata = "{tables / "items.csv"}"\nout = "{model}"\nlabel = "grade"\nprotected = "gender"\n'
    config.write_text(keys + 'qid = "search"\nignore = ["title"]\n[settings]\nnum_trees = 2\n')
    result = rankpolicy("train", "--config", config)
    assert result.status == 0, result.stderr
    assert rp.load(model).feature_names_ == ["price", "brand"]
    assert rankpolicy("train", "--config", config, "--ignore", "title", "--ignore", "brand").status == 0
    assert rp.load(model).feature_names_ == ["price"]
    assert "must have the qid column 'other'" in refused("train", "--config", config, "--qid", "other")
    assert "must have the qid column 'qid'" in refused("train", "--config", config, "--qid", "qid")
    config.write_text(keys + "ignore = [1]\n")
    assert 'ignore must be a list of strings, ["title", "url"]; got [1]' in refused("train", "--config", config)
