import json
import os
from pathlib import Path

import numpy as np
import polars
import pytest

import rankpolicy as rp
from rankpolicy.data import make_fair_synthetic, to_frame

QUICK = ["--set", "epochs=2", "--executor", "processes:1"]
FILES = ["report.html", "run.json", "tradeoff.csv", "tradeoff.json", "tradeoff.png", "tradeoff.svg"]
GERMAN_CREDIT = Path(os.environ.get("RANKPOLICY_DATA", "")) / "german_credit"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table whose groups are words in a column of another name."""
    root = tmp_path_factory.mktemp("tradeoff")
    frame = to_frame(make_fair_synthetic(20, 5)).rename({"group": "gender"})
    words = polars.col("gender").replace_strict({0: "m", 1: "f"}, return_dtype=polars.String)
    frame.with_columns(words).write_parquet(root / "table.parquet")
    return root / "table.parquet"


def test_synthetic_data_in_one_command(rankpolicy, tmp_path):
    result = rankpolicy("tradeoff", "--data", "synthetic", "--methods", "fair-pg-rank,listnet", "--strengths", "0,5",
                        *QUICK, "--seeds", 2, "--out", tmp_path / "out", "--json")  # fmt: skip
    assert result.status == 0
    document = result.json
    first, second = document["curves"]["fair-pg-rank"]
    assert (first["strength"], second["strength"]) == (0, 5)
    assert len(document["curves"]["listnet"]) == 1
    assert {"utility", "disparity"} <= set(first)
    assert first["per_seed"][0]["utility"] != first["per_seed"][1]["utility"]  # each seed has data of its own
    assert set(document["run"]["data"]) == {"seed 0 train", "seed 0 test", "seed 1 train", "seed 1 test"}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    assert json.loads((tmp_path / "out" / "tradeoff.json").read_text()) == document
    assert (tmp_path / "out" / "tradeoff.csv").read_text().count("\n") == 1 + 3
    assert "6/6 " in result.stderr


def test_disparity_is_measured_and_lowered_by_the_aim_of_the_options(rankpolicy, tmp_path):
    result = rankpolicy("tradeoff", "--data", "synthetic", "--methods", "fair-pg-rank", "--strengths", "5", "--rank-weights",
                        "1,0.5,0.2", "--merit", "exp2", "--impact", "--amortized", "--cross-multiplied", *QUICK,
                        "--out", tmp_path / "out", "--json")  # fmt: skip
    assert result.status == 0
    aim = {"name": "group", "merit": "exp2", "rank_weights": [1.0, 0.5, 0.2], "impact": True, "amortized": True,
           "cross_multiplied": True, "parity": 0.0}  # fmt: skip
    assert result.json["fairness_settings"] == aim
    assert result.json["settings"]["fair-pg-rank"]["fairness"] == aim
    page = (tmp_path / "out" / "report.html").read_text()
    assert "disparity of expected clicks" in page
    assert "as measured: 1, 0.5, 0.2" in page


def test_groups_of_a_column_and_the_table_that_is_printed(rankpolicy, table, tmp_path):
    result = rankpolicy("tradeoff", "--data", table, "--protected", "gender", "--methods", "deltr", "--set", "protected_group=f",
                        "--strengths", "0", "--strengths-of", "deltr=0,7", *QUICK, "--out", tmp_path)  # fmt: skip
    assert result.status == 0
    assert "strength 7" in result.stdout
    assert "hypervolume (more is better; reference utility" in result.stdout
    run = json.loads((tmp_path / "run.json").read_text())
    assert [facts["queries"] for facts in run["data"].values()] == [14, 6]
    assert run["settings"]["deltr"]["protected_group"] == "f"


def test_the_values_of_a_feature_are_groups(rankpolicy, tmp_path):
    data = make_fair_synthetic(20, 5)
    features = np.column_stack([data.features, data.groups, data.features[:, 0]])
    rp.data.write_letor(rp.from_arrays(features, np.round(data.labels), group=data.sizes), tmp_path / "data.txt")
    result = rankpolicy("tradeoff", "--data", tmp_path / "data.txt", "--test", tmp_path / "data.txt", "--protected-feature", "3",
                        "--methods", "deltr", "--set", "deltr.protected_group=0", "--strengths", "1", *QUICK, "--out",
                        tmp_path / "out", "--json")  # fmt: skip
    assert result.status == 0
    assert result.json["settings"]["deltr"]["protected_group"] == 0
    assert result.json["queries"] == [20]


@pytest.mark.skipif(not GERMAN_CREDIT.is_dir(), reason="RANKPOLICY_DATA does not point to a folder with german_credit")
@pytest.mark.parametrize("place", [GERMAN_CREDIT, GERMAN_CREDIT / "german.data"])
def test_german_credit_by_folder_or_file(rankpolicy, tmp_path, place):
    result = rankpolicy("tradeoff", "--data", place, "--methods", "fair-pg-rank", "--strengths", "0", *QUICK,
                        "--out", tmp_path, "--json")  # fmt: skip
    assert result.status == 0
    assert result.json["queries"] == [100]
    assert result.json["uniform"]["utility"] == pytest.approx(0.693, abs=0.03)  # the paper's untrained policy


def test_bad_input(refused, table, folder, tmp_path):
    def wrong(*options, data="synthetic"):
        return refused("tradeoff", "--data", data, "--out", tmp_path / "out", "--executor", "processes:1", *options)

    assert "Unknown method 'fair-pgrank'" in wrong("--methods", "fair-pgrank")
    assert "at least one method" in wrong("--methods", ",")
    assert "--strengths must be numbers" in wrong("--strengths", "0,one")
    assert "Unknown method in --strengths-of: 'listnet'" in wrong("--strengths-of", "listnet=0")
    assert "--strengths-of must be METHOD=VALUE" in wrong("--strengths-of", "0,1")
    assert "strengths must be one or more finite numbers, 0 or more" in wrong("--strengths", "-1")
    assert "--bounds must be numbers" in wrong("--bounds", "x")
    assert "leave --protected out" in wrong("--protected", "gender")
    assert "leave --protected-feature out" in wrong("--protected-feature", "1")
    assert "not both" in wrong("--protected", "gender", "--protected-feature", "1", data=table)
    assert "leave --test out" in wrong("--test", table)
    assert "Unknown fairness 'both'" in wrong("--fairness", "both")
    assert "rank weights times item values" in wrong("--reward", "map")
    assert "Unknown merit" in wrong("--merit", "x")
    assert "Unknown rank_weights 'x'" in wrong("--rank-weights", "x")
    assert "--amortized compares groups" in wrong("--amortized", "--fairness", "individual")
    assert "it needs --propensities" in wrong("--bias-method", "em")
    assert "Unknown model 'x'. Known: linear, mlp, highway" in wrong(
        "--strengths", "1", "--set", "fair-pg-rank.model=x"
    )
    assert "has no column 'group'" in wrong(data=folder / "train.txt")
    assert "names a column, and" in wrong("--protected", "gender", data=folder / "train.txt")
    assert "a number from 1 to 8" in wrong("--protected-feature", "9", data=folder / "train.txt")
    assert "at most 20" in wrong("--protected-feature", "1", data=folder / "train.txt")
    assert "the protected column 'sex'" in wrong("--protected", "sex", data=table)
    assert "--test-fraction must be between 0 and 1" in wrong("--protected", "gender", "--test-fraction", 1, data=table)
    assert "there is none" in wrong(data=tmp_path / "none.parquet")
    assert "german.data" in wrong(data=tmp_path / "german.data")
