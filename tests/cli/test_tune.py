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
    assert "trial 2 of 0 to 2:" in result.stderr
    assert "trial 1 of" not in result.stderr
    assert json.loads((out / "tune.json").read_text())["score"] == result.json["score"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--space", "num_leaves=9:3"], "low < high"),
        (["--space", "num_leave=3:9"], "Did you mean 'num_leaves'?"),
        (["--space", "num_leaves=3:9:lin"], "LOW:HIGH:log"),
        (["--space", "num_leaves=9:3"], "--space num_leaves=9:3:"),
        (["--space", "num_leaves"], "--space must be name=value, such as num_leaves=7:127:log"),
        (["--space", "valid_metric=ndcg:map"], "--space valid_metric takes values separated by commas"),
        (["--space", "num_leaves=1:3"], "num_leaves must be at least 2"),
        (["--scheduler", "hyper"], "Unknown scheduler 'hyper'"),
        (["--executor", "rays"], "Did you mean 'ray'?"),
        (["--address", "10.0.0.5:6379"], "--executor ray"),
        (["--method", "auto"], "auto has no setting"),
    ],
)
def test_wrong_options_are_one_line_and_leave_nothing(refused, arguments, tmp_path, wrong, message):
    assert message in refused(*arguments, *wrong, "--out", tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_method_without_settings_of_its_own_asks_for_a_space(refused, arguments, tmp_path):
    method = ["tune", "--method", "auto", *[text for text in arguments if text.startswith("--data")]]
    answer = refused(*method, "--out", tmp_path / "runs")
    assert "auto has no settings that are searched by default. Name some: --space NAME=LOW:HIGH." in answer


@pytest.mark.parametrize(("option", "what"), [("valid", "validation data"), ("test", "test data")])
def test_data_that_does_not_fit_is_refused_before_any_trial(refused, arguments, tmp_path, option, what):
    other = rp.data.make_ranking(5, items_per_query=8, num_features=4, num_informative=3)
    rp.data.write_parquet(other, tmp_path / "other.parquet")
    answer = refused(*arguments, f"--{option}={tmp_path / 'other.parquet'}", "--out", tmp_path / "runs")
    assert what in answer
    assert not (tmp_path / "runs" / "study.jsonl").exists()


def test_sparse_files_may_omit_the_last_features(rankpolicy, arguments, tmp_path):
    lines = "".join(f"{n % 2} qid:{n // 4} 1:{n / 10} 2:{n % 3}\n" for n in range(40))
    (tmp_path / "narrow.txt").write_text(lines)
    (tmp_path / "wide.txt").write_text(lines + "1 qid:99 1:0.5 9:1\n0 qid:99 1:0.1\n")
    files = [
        f"--data={tmp_path / 'wide.txt'}",
        f"--valid={tmp_path / 'narrow.txt'}",
        f"--test={tmp_path / 'narrow.txt'}",
    ]
    result = rankpolicy(*arguments, *files, "--out", tmp_path / "runs", "--num-trials", 1)
    assert result.status == 0, result.stderr
