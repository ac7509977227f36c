import json

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.data.fingerprints import sha256_of_file

from .conftest import SMALL


def arguments(folder, out, *more):
    return [
        "train",
        "--method",
        "pg-rank",
        "--data",
        folder / "train.txt",
        "--valid",
        folder / "vali.txt",
        "--out",
        out,
        *more,
    ]


def test_the_model_and_its_record_are_written(rankpolicy, folder, tmp_path):
    result = rankpolicy(*arguments(folder, tmp_path / "m.rp", *SMALL, "--seed", 3, "--json"))
    assert result.status == 0
    record = json.loads((tmp_path / "m.run.json").read_text())
    assert result.json == record | {"run": str(tmp_path / "m.run.json")}
    assert record["method"] == "pg-rank"
    assert record["seed"] == record["settings"]["random_state"] == 3
    assert record["settings"]["epochs"] == 2
    assert record["settings"]["model"] == {
        "name": "mlp",
        "hidden": [4],
        "dropout": 0.3,
        "query_context": "none",
        "initial_range": None,
    }
    assert record["data"]["train"]["sha256"] == sha256_of_file(folder / "train.txt")
    assert record["data"]["valid"]["queries"] == 15
    assert set(record["metrics"]["valid"]) == {"ndcg@10"}
    assert {"python", "torch", "rankpolicy"} <= set(record["versions"])
    assert record["duration_seconds"] > 0
    assert record["command"].startswith("rankpolicy train --method pg-rank")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.rp", "m.run.json"]


def test_it_learns_what_the_python_api_learns(rankpolicy, folder, tmp_path):
    result = rankpolicy(*arguments(folder, tmp_path / "m.rp", *SMALL))
    assert "validation ndcg@10" in result.stdout
    train, valid, test = (rp.read_letor(folder / f"{name}.txt") for name in ("train", "vali", "test"))
    ours = rp.PGRank(epochs=2, model=rp.models.MLP(hidden=(4,)), num_networks=1).fit(train, valid=valid)
    np.testing.assert_allclose(rp.load(tmp_path / "m.rp").predict(test), ours.predict(test))


def test_a_network_over_whole_queries_is_trained_and_ranks(rankpolicy, folder, tmp_path):
    sets = (
        "--set",
        "model=list-transformer",
        "--set",
        "model.width=8",
        "--set",
        "model.num_heads=4",
        "--set",
        "epochs=1",
    )
    assert rankpolicy(*arguments(folder, tmp_path / "m.rp", *sets)).status == 0
    loaded = rp.load(tmp_path / "m.rp")
    assert loaded.model == rp.models.ListTransformer(width=8, num_heads=4)
    result = rankpolicy("evaluate", tmp_path / "m.rp", "--data", folder / "test.txt", "--json")
    measured = rp.evaluate(loaded, rp.read_letor(folder / "test.txt"), ["ndcg@10"]).means["ndcg@10"]
    assert result.json["metrics"]["ndcg@10"]["mean"] == pytest.approx(measured)


def test_flags_go_before_the_run_file(rankpolicy, folder, tmp_path):
    config = tmp_path / "run.toml"
    config.write_text(
        f'method = "listnet"\ndata = "{folder}/train.txt"\nout = "{tmp_path}/m.rp"\nseed = 5\n'
        '[settings]\nepochs = 3\npatience = "none"\nlearning_rate = 1\n[settings.model]\nhidden = [4, 4]'
    )
    record = rankpolicy("train", "--config", config, "--set", "epochs=1", "--json").json
    assert record["method"] == "listnet"
    assert record["seed"] == 5
    assert record["metrics"] == {"valid": {}, "best_iteration": 1}
    assert [record["settings"][name] for name in ("epochs", "model", "patience", "learning_rate")] == [
        1,
        {"name": "mlp", "hidden": [4, 4], "dropout": 0.3, "query_context": "none", "initial_range": None},
        None,
        1.0,
    ]


def test_training_resumes_from_its_checkpoint(rankpolicy, folder, tmp_path):
    checkpoint = ["--checkpoint", tmp_path / "state"]
    rankpolicy(*arguments(folder, tmp_path / "half.rp", *SMALL, *checkpoint))
    rankpolicy(*arguments(folder, tmp_path / "resumed.rp", *SMALL, "--set", "epochs=4", *checkpoint, "--resume"))
    rankpolicy(*arguments(folder, tmp_path / "whole.rp", *SMALL, "--set", "epochs=4"))
    test = rp.read_letor(folder / "test.txt")
    np.testing.assert_array_equal(*(rp.load(tmp_path / name).predict(test) for name in ("resumed.rp", "whole.rp")))


def test_a_sparse_validation_file_gets_the_width_of_the_training_file(rankpolicy, folder, tmp_path):
    (tmp_path / "sparse.txt").write_text("1 qid:1 1:0.5\n0 qid:1 2:0.5\n")
    result = rankpolicy("train", "--method", "regression", "--data", folder / "train.txt", "--valid", tmp_path / "sparse.txt",
                        "--out", tmp_path / "m.rp", "--set", "epochs=1", "--set", "model.hidden=4")  # fmt: skip
    assert result.status == 0
    assert rp.load(tmp_path / "m.rp").num_features_ == 8


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("epoch=2", "Did you mean 'epochs'? Known: reward, estimator"),
        ("epochs=ten", "setting epochs must be a whole number; got 'ten'"),
        ("epochs=1.5", "must be a whole number"),
        ("learning_rate=nan", "must be a number; got 'nan'"),
        ("model.hidden=64,x", "setting hidden must be a whole number; got 'x'"),
        ("epochs", "--set must be name=value"),
        ("epochs=0", "epochs must be at least 1"),
        ("model=mpl", "Unknown model 'mpl'"),
        ("reward=ndgc", "Did you mean 'ndcg'?"),
        ("device=cuda:77", "device must be one that torch can use here"),
    ],
)
def test_settings_that_cannot_be_used(refused, folder, tmp_path, assignment, message):
    assert message in refused(*arguments(folder, tmp_path / "m.rp", "--set", assignment))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("assignment", ["num_leaves=1", "num_trees=0"])
def test_settings_of_trees_out_of_range(refused, folder, tmp_path, assignment):
    data = ["--data", folder / "train.txt", "--out", tmp_path / "m.rp"]
    assert "must be at least" in refused("train", "--method", "lambdamart", *data, "--set", assignment)


def test_places_and_files_that_cannot_be_used(refused, folder, tmp_path):
    assert "--out must be in a directory that exists" in refused(*arguments(folder, tmp_path / "none" / "m.rp"))
    assert "--out must name a file" in refused(*arguments(folder, tmp_path))
    assert "must be a file; there is none" in refused(*arguments(tmp_path, tmp_path / "m.rp"))
    assert "--resume needs --checkpoint" in refused(*arguments(folder, tmp_path / "m.rp", "--resume"))
    assert "train needs --data" in refused("train", "--method", "pg-rank", "--out", tmp_path / "m.rp")
    unknown = ["train", "--method", "pgrank", "--data", folder / "train.txt", "--out", tmp_path / "m.rp"]
    assert "Unknown method 'pgrank'. Did you mean 'pg-rank'?" in refused(*unknown)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x qid:1 1:0.5", "line 1"),
        ("1 qid:1 1:nan", "finite decimal number"),
        ("-1 qid:1 1:0.5", "expected a label that is 0 or more"),
        ("1 qid:1 1:zero", "line 1"),
        ("", "bad.txt"),
    ],
)
def test_malformed_data(refused, tmp_path, line, message):
    (tmp_path / "bad.txt").write_text(line + "\n")
    answer = refused("train", "--method", "pg-rank", "--data", tmp_path / "bad.txt", "--out", tmp_path / "m.rp")
    assert message in answer


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metod = 'pg-rank'", "Did you mean 'method'?"),
        ("seed = 'one'", "seed must be a whole number; got 'one'"),
        ("group = 'gender'", "group is now protected."),
        ("on_disk = 'yes'", "on_disk must be true or false; got 'yes'"),
        ("method = ", "must be a TOML file"),
    ],
)
def test_run_files_that_cannot_be_used(refused, tmp_path, text, message):
    (tmp_path / "run.toml").write_text(text)
    assert message in refused("train", "--config", tmp_path / "run.toml")


def test_iterations_are_named_where_there_are_any(rankpolicy, folder, tmp_path):
    def first_line(*method):
        return rankpolicy(
            "train", "--data", folder / "train.txt", "--out", tmp_path / "m.rp", "--method", *method
        ).stdout

    assert first_line("rank-svm").startswith("rank-svm: fitted")
    assert first_line("listnet", "--set", "epochs=1").startswith("listnet: kept iteration 1")


def test_a_blend_ends_with_its_members_and_their_weights(rankpolicy, folder, tmp_path):
    recipe = '{"boosted-regression": {"num_trees": 3, "min_items_in_leaf": 1}, "regression": {"epochs": 2}}'
    command = ["train", "--method", "auto", "--data", folder / "train.txt", "--valid", folder / "vali.txt"]
    command += ["--set", "methods=boosted-regression,regression", "--set", f"method_settings={recipe}"]
    result = rankpolicy(*command, "--set", "feature_gate=false", "--out", tmp_path / "m.rp")
    assert result.status == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    first = rows.index(["method", "members", "weight", "validation", "reward"])
    by_method = {row[0]: row[1:] for row in rows[first + 1 : first + 4]}
    assert list(by_method) == ["boosted-regression", "regression", "blend"]
    assert sum(float(by_method[name][1]) for name in ("boosted-regression", "regression")) == pytest.approx(1)
    record = json.loads((tmp_path / "m.run.json").read_text())
    members = record["blend"]["members"]
    assert sum(member["weight"] for member in members) == pytest.approx(1)
    assert int(by_method["blend"][0]) == len(members)
    assert record["interrupted"] is False
