"""rankpolicy tune"""

import json

import pytest

import rankpolicy as rp


@pytest.fixture
def arguments(tmp_path):
    data = rp.data.make_ranking(60, items_per_query=8, num_features=6, num_informative=3)
    for name, part in (("train", data[:30]), ("valid", data[30:45]), ("test", data[45:])):
        rp.data.write_parquet(part, tmp_path / f"{name}.parquet")
    files = [f"--{option}={tmp_path / name}.parquet" for option, name in (("data", "train"), ("valid", "valid"))]
    quick = [
        "--set",
        "num_trees=12",
        "--set",
        "min_items_in_leaf=5",
        "--space",
        "num_leaves=3:31:log",
        "--space",
        "l2=0,1",
    ]
    return ["tune", "--method", "lambdamart", *files, *quick]


def test_a_search_writes_model_trials_and_report_and_measures_test_queries(rankpolicy, arguments, tmp_path):
    out = tmp_path / "runs"
    result = rankpolicy(*arguments, f"--test={tmp_path / 'test.parquet'}", "--out", out, "--num-trials", 8, "--json")
    assert result.status == 0, result.stderr
    document = result.json
    assert [trial["trial"] for trial in document["trials"]] == list(range(8))
    low, high = document["test"]["ndcg@10"]["interval"]
    assert low <= document["test"]["ndcg@10"]["difference"] <= high
    model = rp.load(out / "model.rp")
    test = rp.read_parquet(tmp_path / "test.parquet")
    assert rp.evaluate(model, test, ["ndcg@10"]).means["ndcg@10"] == pytest.approx(document["test"]["ndcg@10"]["tuned"])
    page = (out / "report.html").read_text()
    for text in ("Best so far", "Which settings matter", "num_leaves", "On test queries", "as given"):
        assert text in page
    assert len((out / "trials.csv").read_text().splitlines()) == 9


def test_a_search_goes_on_only_when_asked_to(rankpolicy, refused, arguments, tmp_path):
    out = tmp_path / "runs"
    assert rankpolicy(*arguments, "--out", out, "--num-trials", 2).status == 0
    assert "add --resume" in refused(*arguments, "--out", out, "--num-trials", 3)
    result = rankpolicy(*arguments, "--out", out, "--num-trials", 3, "--resume", "--json")
    assert len(result.json["trials"]) == 3
    assert "trial 3/3" in result.stderr
    assert "trial 2/3" not in result.stderr
    assert json.loads((out / "tune.json").read_text())["score"] == result.json["score"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--space", "num_leaves=9:3"], "low < high"),
        (["--space", "num_leave=3:9"], "Did you mean 'num_leaves'?"),
        (["--space", "num_leaves=3:9:lin"], "LOW:HIGH:log"),
        (["--scheduler", "hyper"], "Unknown scheduler 'hyper'"),
    ],
)
def test_wrong_options_are_one_line(refused, arguments, tmp_path, wrong, message):
    assert message in refused(*arguments, *wrong, "--out", tmp_path / "runs")
