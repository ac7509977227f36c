"""The command line on click tables: train, predict, evaluate."""

import json

import numpy as np
import polars
import pytest

import rankpolicy as rp
from rankpolicy.cli.main import _say_warning
from rankpolicy.clicks import PositionBias
from rankpolicy.data import read_click_table

SETTINGS = ["model.embedding_size=4", "model.hidden=4", "epochs=2", "num_networks=1"]


def table(num_sessions=8):
    random = np.random.default_rng(0)
    sessions = np.repeat(np.arange(num_sessions), 3)
    return polars.DataFrame(
        {
            "session": [f"s{number}" for number in sessions],
            "query_text": [f"tea {number % 3}" for number in sessions],
            "item_text": random.choice(["pot", "cup", "mug"], len(sessions)).tolist(),
            "position": np.tile([3, 1, 2], num_sessions),
            "clicked": np.tile([1, 0, 0], num_sessions),
            "price": random.random(len(sessions)),
            "size": random.choice(["S", "M", "40"], len(sessions)).tolist(),
        }
    )


@pytest.fixture
def model(rankpolicy, tmp_path):
    table().write_csv(tmp_path / "clicks.csv")
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    data = tmp_path / "clicks.csv"
    result = rankpolicy("train", "--method", "matching-cross", "--data", data, "--out", tmp_path / "m.rp", *settings)
    assert result.status == 0, result.stderr
    return tmp_path / "m.rp"


def test_scores_stand_in_the_order_of_the_file(rankpolicy, model, tmp_path):
    new = table().drop("clicked", "position", "session")
    new.write_csv(tmp_path / "new.csv")
    new.write_parquet(tmp_path / "new.parquet")
    expected = rp.load(model).predict(new)
    for name in ("new.csv", "new.parquet"):
        result = rankpolicy("predict", model, "--data", tmp_path / name, "--out", tmp_path / "scores.txt")
        assert result.status == 0, result.stderr
        np.testing.assert_allclose(np.loadtxt(tmp_path / "scores.txt"), expected, rtol=1e-6)


def test_a_run_is_sorted_and_goes_by_sessions(rankpolicy, model, tmp_path):
    result = rankpolicy("predict", model, "--data", tmp_path / "clicks.csv", "--out", tmp_path / "run.trec")
    assert result.status == 0, result.stderr
    run = rp.data.read_run(tmp_path / "run.trec")
    assert list(run) == [f"s{number}" for number in range(8)]
    scores = rp.load(model).predict(table())
    np.testing.assert_allclose([run["s1"][str(row)] for row in (3, 4, 5)], scores[3:6], rtol=1e-6)


def test_a_category_whose_new_values_are_all_digits_is_still_one(rankpolicy, model, tmp_path):
    new = table().with_columns(size=polars.lit("40"))
    new.write_csv(tmp_path / "new.csv")
    result = rankpolicy("predict", model, "--data", tmp_path / "new.csv", "--out", tmp_path / "scores.txt")
    assert result.status == 0, result.stderr
    np.testing.assert_allclose(np.loadtxt(tmp_path / "scores.txt"), rp.load(model).predict(new), rtol=1e-6)


def test_evaluation_is_that_of_the_library(rankpolicy, model, tmp_path):
    result = rankpolicy("evaluate", model, "--data", tmp_path / "clicks.csv", "--metrics", "rr,ndcg@3", "--json")
    assert result.status == 0, result.stderr
    expected = rp.evaluate(rp.load(model), read_click_table(tmp_path / "clicks.csv"), ["rr", "ndcg@3"]).means
    assert {name: facts["mean"] for name, facts in result.json["metrics"].items()} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query_text,item_text,clicked\ntea,,1\n", "line 2: item_text must be a text that is not empty"),
        ("query_text,item_text\ntea,pot\n", "must have the column 'clicked'"),
        ("qid,label,f1\n1,0,3\n", "must have the column 'query_text'; it has qid, label, f1"),
        ("query_text,item_text,clicked\n", "must hold at least one row"),
    ],
)
def test_a_table_that_does_not_fit_is_one_line(refused, model, text, message, tmp_path):
    (tmp_path / "bad.csv").write_text(text)
    assert message in refused("evaluate", model, "--data", tmp_path / "bad.csv")


def test_propensities_weight_the_means_of_a_click_table(rankpolicy, model, tmp_path):
    call = ["evaluate", model, "--data", tmp_path / "clicks.csv", "--metrics", "mrr,success@1"]
    bias = PositionBias(
        method="told",
        propensities=np.array([1, 0.5, 0.25]),
        intervals=np.full((3, 2), np.nan),
        level=0.95,
        resampled="sessions",
        num_resamples=0,
        click_through=np.full(3, 0.1),
        num_sessions=8,
        num_clicks=8,
        num_swap_pairs=0,
    )
    (tmp_path / "bias.json").write_text(json.dumps(bias.to_dict()))
    document = rankpolicy(*call, "--propensities", tmp_path / "bias.json", "--json").json
    assert document["weighted"]["effective_sample_size"] == pytest.approx(8)
    assert "means are weighted" in rankpolicy(*call, "--propensities", tmp_path / "bias.json").stdout
    assert "means are weighted" not in rankpolicy(*call).stdout
    both = {"methods": {"em": bias.to_dict(), "dual": bias.to_dict()}}
    (tmp_path / "both.json").write_text(json.dumps(both))
    chosen = rankpolicy(*call, "--propensities", tmp_path / "both.json", "--bias-method", "em", "--json").json
    assert chosen["metrics"] == document["metrics"]
    assert "several methods, em, dual" in rankpolicy(*call, "--propensities", tmp_path / "both.json").stderr
    assert "--bias-method names a method" in rankpolicy(*call, "--bias-method", "em").stderr


def test_a_warning_is_a_line(capsys):
    _say_warning(UserWarning("columns\nare missing"), UserWarning, "file.py", 3)
    assert capsys.readouterr().err == "warning: columns are missing\n"
