import json

import polars
import pytest

QUICK = [
    "--set",
    "epochs=2",
    "--set",
    "model.hidden=4",
    "--set",
    "num_networks=1",
    "--set",
    "num_trees=5",
]


def test_json_has_the_agreed_shape(rankpolicy, folder, tmp_path):
    result = rankpolicy("compare", *ALONE, "--data", folder / "folds", "--methods", "pg-rank,lambdamart", "--metrics", "ndcg@10,map",
                        "--no-tune", *QUICK, "--out", tmp_path / "out", "--json")  # fmt: skip
    assert result.status == 0
    document = result.json
    assert set(document["methods"]) == {"pg-rank", "lambdamart"}
    ndcg = document["methods"]["pg-rank"]["ndcg@10"]
    assert ndcg["mean"] == pytest.approx(sum(ndcg["per_fold"]) / 2)
    assert len(document["significance"]) == 2 * 3
    assert {"a", "b", "metric", "test", "p", "p_holm", "difference"} <= set(document["significance"][0])
    assert document["conventions"]["empty"] == 0
    assert document["settings"]["lambdamart"][1]["num_trees"] == 5
    assert len(document["run"]["data"]) == 6
    assert json.loads((tmp_path / "out" / "compare.json").read_text()) == document
    assert "Comparison of rankers" in (tmp_path / "out" / "report.html").read_text()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["compare.json", "report.html", "run.json"]


def test_one_file_is_split_by_query_and_the_table_is_printed(rankpolicy, folder):
    result = rankpolicy("compare", *ALONE, "--data", folder / "train.txt", "--folds", 3, "--methods", "listnet,regression",
                        "--set", "epochs=1", "--set", "listnet.model.hidden=4", "--set", "learning_rate=0.01",
                        "--set", "model.dropout=0")  # fmt: skip
    assert result.status == 0
    assert "30 test queries" in result.stdout
    assert "mean over 3 folds" in result.stdout
    assert "conventions: gain=exp2" in result.stdout
    assert "listnet: " in result.stdout
    assert result.stderr.count("Fold3 ") == 2


def test_bad_input(refused, folder, tmp_path):
    call = ["compare", *ALONE, "--data", folder / "folds", "--methods"]
    assert "Unknown method 'lambdamrt'. Did you mean 'lambdamart'?" in refused(*call, "pg-rank,lambdamrt")
    assert "at least one method" in refused(*call, ",")
    assert "Unknown metric 'mapp'" in refused(*call, "pg-rank", "--metrics", "mapp")
    assert "pg-rank has no setting 'num_leaves'; it is a setting of BoostedPolicy, LambdaMART" in refused(
        *call, "pg-rank", "--set", "pg-rank.num_leaves=3"
    )
    assert "Unknown setting 'epoch'. Did you mean 'epochs'?" in refused(*call, "pg-rank", "--set", "epoch=3")
    assert "Unknown method in --set: 'listnet'" in refused(*call, "pg-rank", "--set", "listnet.epochs=3")
    assert "it holds none" in refused("compare", *ALONE, "--data", tmp_path, "--methods", "pg-rank")
    assert "there is none" in refused("compare", *ALONE, "--data", tmp_path / "none.txt", "--methods", "pg-rank")
    assert "number of folds" in refused("compare", *ALONE, "--data", folder / "test.txt", "--folds", 99)
    (tmp_path / "file").touch()
    assert "--out must be a directory" in refused(*call, "pg-rank", "--out", tmp_path / "file")


def test_a_variant_is_a_method_once_more_with_settings_of_its_own(rankpolicy, folder, tmp_path):
    call = [
        "compare",
        "--executor",
        "processes:1",
        "--data",
        folder / "folds",
        "--no-tune",
        "--set",
        "epochs=2",
        "--methods",
        "pg-rank",
        "--metrics",
        "ndcg@10",
    ]
    result = rankpolicy(
        *call, "--variant", "linear=pg-rank", "--set", "linear.model=linear", "--out", tmp_path, "--json"
    )
    assert list(result.json["methods"]) == ["pg-rank", "linear"]
    assert result.json["settings"]["linear"][0]["model"] == "linear"
    assert "model" not in result.json["settings"]["pg-rank"][0]
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["settings"]["linear"]["model"] == "linear"
    assert run["settings"]["pg-rank"]["model"] != "linear"
    assert run["options"]["variant"] == ["linear=pg-rank"]


def test_wrong_variants(refused, folder):
    call = ["compare", *ALONE, "--data", folder / "folds", "--variant"]
    assert "--variant must be NAME=METHOD, such as wide=pg-rank" in refused(*call, "pg-rank")
    assert "--variant must be NAME=METHOD" in refused(*call, "a.b=pg-rank")
    assert "Did you mean 'pg-rank'" in refused(*call, "wide=pg-rnk")
    assert "lambdamart is taken already" in refused(*call, "lambdamart=pg-rank")
    assert "a is taken already" in refused(*call, "a=pg-rank", "--variant", "a=listnet")
    assert "Unknown method in --set: 'wise'" in refused(*call, "wide=pg-rank", "--set", "wise.epochs=2")
    assert "Unknown method 'pg-rank:wide'" in refused("compare", *ALONE, "--data", folder, "--methods", "pg-rank:wide")


ALONE = ["--executor", "processes:1"]
FAST = ["--no-tune", "--metrics", "ndcg@10,map", "--set", "num_trees=3"]


def test_a_run_is_the_baseline_and_every_query_is_written(rankpolicy, folder, tmp_path):
    run, table = tmp_path / "outside.trec", tmp_path / "queries.csv"
    assert rankpolicy("predict", folder / "model.rp", "--data", folder / "test.txt", "--out", run).status == 0
    result = rankpolicy("compare", *ALONE, "--data", folder / "folds", "--methods", "lambdamart", *FAST, "--run", f"outside={run}",
                        "--baseline", "outside", "--per-query", table, "--out", tmp_path / "out", "--json")  # fmt: skip
    assert result.status == 0, result.stderr
    measured = rankpolicy("evaluate", folder / "model.rp", "--data", folder / "test.txt", "--json").json
    assert result.json["methods"]["outside"]["map"]["per_fold"] == pytest.approx(
        [measured["metrics"]["map"]["mean"]] * 2
    )
    assert result.json["baseline"] == "outside"
    assert {(case["a"], case["b"]) for case in result.json["significance"]} == {("lambdamart", "outside")}
    assert set(result.json["run"]["data"]["run outside"]) == {"path", "sha256"}
    lines = table.read_text().splitlines()
    assert lines[0] == "method,fold,query_id,ndcg@10,map"
    assert len(lines) == 1 + 2 * 2 * 15
    page = (tmp_path / "out" / "report.html").read_text()
    assert "over the comparisons of a test with outside" in page
    assert "lambdamart − outside" in page


def test_the_baseline_heads_the_table(rankpolicy, folder, tmp_path):
    table = tmp_path / "queries.parquet"
    result = rankpolicy("compare", *ALONE, "--data", folder / "train.txt", "--folds", 2, "--methods", "lambdamart,listnet", *FAST,
                        "--set", "epochs=1", "--baseline", "lambdamart", "--per-query", table)  # fmt: skip
    assert result.status == 0, result.stderr
    assert "against lambdamart" in result.stdout
    assert "over the comparisons of a test with lambdamart" in result.stdout
    assert f"metrics of 30 queries: {table}" in result.stderr
    assert len(polars.read_parquet(table)) == 2 * 30


def test_wrong_runs_baselines_and_tables(refused, folder, tmp_path):
    call = ["compare", *ALONE, "--data", folder / "folds", "--methods", "pg-rank"]
    assert "--run must be NAME=FILE, such as bm25=bm25.trec; got 'bm25'" in refused(*call, "--run", "bm25")
    assert "'pg-rank' is taken" in refused(*call, "--run", "pg-rank=x.trec")
    assert "'a' is taken" in refused(*call, "--run", "a=x.trec", "--run", "a=y.trec")
    assert "there is none" in refused(*call, "--run", f"a={tmp_path / 'none.trec'}")
    assert "Unknown method or run in --baseline: 'pgrank'. Did you mean 'pg-rank'?" in refused(
        *call, "--baseline", "pgrank"
    )
    (tmp_path / "short.trec").write_text("1 Q0 a 1 0.5 x\n")
    assert "must rank every query of the data" in refused(*call, "--run", f"a={tmp_path / 'short.trec'}")
    assert "--per-query must end in .csv or .parquet" in refused(*call, "--per-query", tmp_path / "q.txt")
    assert "must not be a file that is read" in refused(
        *call, "--run", f"a={tmp_path / 'r.csv'}", "--per-query", tmp_path / "r.csv"
    )
    assert "is a directory of folds" in refused(*call, "--qid", "search")
