import json

import polars
import pytest

import rankpolicy as rp


def test_json_is_what_the_python_api_measures(rankpolicy, folder):
    result = rankpolicy(
        "evaluate", folder / "model.rp", "--data", folder / "test.txt", "--metrics", "ndcg@5,mean(ap, rr)", "--json"
    )
    assert result.status == 0
    table = rp.evaluate(rp.load(folder / "model.rp"), rp.read_letor(folder / "test.txt"), ["ndcg@5", "mean(ap, rr)"])
    assert {name: facts["mean"] for name, facts in result.json["metrics"].items()} == pytest.approx(table.means)
    assert result.json["conventions"] == {
        "gain": "exp2",
        "empty": 0,
        "relevant_from": 1.0,
        "max_label": 4.0,
        "ties": "expected",
    }
    assert result.json["queries"] == 15
    assert result.json["method"] == "pg-rank"


def test_conventions_are_followed_and_printed(rankpolicy, folder):
    test = rp.read_letor(folder / "test.txt")
    conventions = rp.Conventions(gain="linear", empty="skip", relevant_from=2)
    table = rp.evaluate(rp.load(folder / "model.rp"), test, ["ndcg@10", "map"], conventions=conventions)
    result = rankpolicy("evaluate", folder / "model.rp", "--data", folder / "test.txt",
                        "--gain", "linear", "--empty", "skip", "--relevant-from", 2)  # fmt: skip
    assert "conventions: gain=linear, empty=skip, relevant_from=2, max_label=4, ties=expected" in result.stdout
    for mean in table.means.values():
        assert f"{mean:.4f}" in result.stdout


def test_the_seed_draws_the_interval(rankpolicy, folder):
    call = ["evaluate", folder / "model.rp", "--data", folder / "test.txt", "--json"]
    first, again, other = (rankpolicy(*call, "--seed", seed).json["metrics"]["map"] for seed in (1, 1, 2))
    assert first == again
    assert first["interval"] != other["interval"]


def test_metrics_of_every_query(rankpolicy, folder, tmp_path):
    call = ["evaluate", folder / "model.rp", "--data", folder / "test.txt"]
    for name, read in (("q.csv", polars.read_csv), ("q.parquet", polars.read_parquet)):
        assert rankpolicy(*call, "--per-query", tmp_path / name).status == 0
        assert read(tmp_path / name).columns == ["query_id", "ndcg@10", "map"]
    lines = rankpolicy(*call, "--trec").stdout.splitlines()
    assert len(lines) == 2 * 15 + 2
    assert lines[-1].startswith("map\tall\t")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["q.csv", "q.parquet"]


def test_bad_input(refused, folder, tmp_path):
    test = ["--data", folder / "test.txt"]
    model = folder / "model.rp"
    assert "Did you mean 'ndcg'?" in refused("evaluate", model, *test, "--metrics", "ndgc@10")
    assert "--empty must be 0, 1 or skip; got '2'" in refused("evaluate", model, *test, "--empty", "2")
    assert "--gain must be exp2 or linear" in refused("evaluate", model, *test, "--gain", "log")
    assert "err needs labels up to max_label" in refused("evaluate", model, *test, "--metrics", "err", "--max-label", 1)
    assert "--per-query must end in .csv or .parquet" in refused("evaluate", model, *test, "--per-query", "q.txt")
    assert "choose --json or --trec" in refused("evaluate", model, *test, "--json", "--trec")
    assert "no model file" in refused("evaluate", tmp_path / "none.rp", *test)
    assert "is not a rankpolicy model" in refused("evaluate", folder / "test.txt", *test)
    assert "must be a file" in refused("evaluate", model, "--data", tmp_path)
    (tmp_path / "wide.txt").write_text("1 qid:1 9:0.5\n")
    assert "9" in refused("evaluate", model, "--data", tmp_path / "wide.txt")


def test_json_stays_json_when_a_metric_has_no_value(rankpolicy, folder, tmp_path):
    (tmp_path / "irrelevant.txt").write_text("0 qid:1 1:0.5\n0 qid:1 2:0.5\n")
    result = rankpolicy(
        "evaluate", folder / "model.rp", "--data", tmp_path / "irrelevant.txt", "--empty", "skip", "--json"
    )
    assert json.loads(result.stdout)["metrics"]["map"]["mean"] is None


@pytest.mark.parametrize("option", ["--relevant-from", "--max-label"])
@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
def test_conventions_are_numbers(refused, folder, option, value):
    line = refused("evaluate", folder / "model.rp", "--data", folder / "test.txt", option, value, "--json")
    assert "must be a label, a finite number 0 or more" in line


def test_ties_are_measured_as_asked(rankpolicy, refused, folder):
    call = ["evaluate", folder / "model.rp", "--data", folder / "test.txt"]
    assert "ties=worst" in rankpolicy(*call, "--ties", "worst").stdout
    assert "--ties must be expected, worst or item_id; got 'best'" in refused(*call, "--ties", "best")
