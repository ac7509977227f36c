"""The rule of ``--out`` and ``run.json``, over all verbs: see rankpolicy/cli/support/output.py."""

import json

import pytest

from rankpolicy.cli.verbs import CLICKS_VERBS, VERBS
from reproductions import TARGETS, Claim, Outcome, Target

FIELDS = {"command", "options", "settings", "seed", "data", "versions", "machine", "started", "duration_seconds"}
WITHOUT_RESULTS = {
    "evaluate",
    "methods",
    "doctor",
    "sample-data",
    "clicks",
    "serve",
    "service",
}  # clicks and service are groups
FILES = {"train", "predict", "export", "distil", "clicks judgments"}


@pytest.fixture
def calls(folder, tmp_path, monkeypatch):
    """Of every verb that makes a directory: its arguments without --out."""
    log = tmp_path / "log.csv"
    rows = [(f"s{s}", "q", i, p, (s + p) % 2) for s in range(12) for p, i in enumerate("ab" if s % 2 else "ba", 1)]
    log.write_text("session,query,item,position,clicked\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    queries = [f"q{number}" for number in range(6)]
    searches, items = tmp_path / "searches.csv", tmp_path / "items.csv"
    shown = [
        f"{query},{query},{item},{rank},{int(rank == 1)}" for query in queries for rank, item in enumerate("ab", 1)
    ]
    searches.write_text("\n".join(["session,query,item,position,clicked", *shown]))
    items.write_text(
        "\n".join(["query,item_id,x", *(f"{query},{item},{ord(item)}" for query in queries for item in "ab")])
    )
    claim = Claim(claim="x", paper="y", ours="z", low=1, high=1, at_least=0)
    outcome = Outcome(rows=({"method": "ours"},), claims=(claim,))
    monkeypatch.setitem(TARGETS, "paper/table", Target(name="paper/table", what="a table", run=lambda setup: outcome))
    quick = ["--set", "epochs=1"]
    return {
        "explain": [folder / "model.rp", "--data", folder / "test.txt", "--repeats", 1],
        "demo": ["--queries", "20"],
        "compare": [
            "--executor",
            "processes:1",
            "--data",
            folder / "folds",
            "--methods",
            "regression",
            "--no-tune",
            *quick,
        ],
        "tune": ["--data", folder / "train.txt", "--method", "regression", "--num-trials", 2, *quick],
        "tradeoff": [
            "--data",
            "synthetic",
            "--methods",
            "deltr",
            "--strengths",
            "0",
            "--executor",
            "processes:1",
            *quick,
        ],
        "simulate": ["--steps", 20, "--runs", 2, "--bandits", "random"],
        "reproduce": ["paper/table"],
        "loop": [
            "--ubi",
            searches,
            "--features",
            items,
            "--engine",
            "opensearch",
            "--set",
            "num_trees=2",
            "--set",
            "min_items_in_leaf=1",
        ],
        "clicks fit": [log, "--models", "gctr"],
        "clicks bias": [log, "--method", "all-pairs", "--resamples", 0],
    }


def test_every_verb_is_covered(calls):
    verbs = {*VERBS, *(f"clicks {name}" for name in CLICKS_VERBS)}
    assert verbs == {*calls, *FILES, *WITHOUT_RESULTS}


def test_a_directory_holds_the_results_and_the_record(rankpolicy, calls, tmp_path):
    for verb, arguments in calls.items():
        out = tmp_path / "runs" / verb  # made with its parents
        result = rankpolicy(*verb.split(), *arguments, "--out", out, "--seed", 1, "--json")
        assert result.status == 0, (verb, result.stderr)
        document = json.loads((out / f"{verb.split()[-1]}.json").read_text())
        assert document.items() <= result.json.items(), verb
        run = json.loads((out / "run.json").read_text())
        assert run == document["run"], verb
        assert set(run) == FIELDS, verb
        assert run["command"].startswith(f"rankpolicy {verb} "), verb
        assert run["seed"] == 1, verb
        assert run["options"]["out"] == str(out), verb
        assert run["settings"], verb
        assert all({"path", "sha256"} <= set(facts) for facts in run["data"].values()), verb
        assert list(out.parent.rglob("*.unfinished")) == [], verb


def test_a_file_stands_in_the_way_of_a_directory(refused, calls, tmp_path):
    (tmp_path / "file").write_text("")
    for verb, arguments in calls.items():
        assert "--out must be a directory" in refused(*verb.split(), *arguments, "--out", tmp_path / "file"), verb


def test_training_keeps_its_record_beside_the_model(rankpolicy, refused, folder, tmp_path):
    call = ["train", "--method", "regression", "--data", folder / "train.txt", "--set", "epochs=1", "--out"]
    assert rankpolicy(*call, tmp_path / "model.rp").status == 0
    run = json.loads((tmp_path / "model.run.json").read_text())
    assert set(run) >= FIELDS
    assert run["settings"]["epochs"] == 1
    assert run["data"]["train"]["queries"] == 30
    assert "--out must name a file" in refused(*call, tmp_path)


def test_predictions_are_one_file(rankpolicy, refused, folder, tmp_path):
    call = ["predict", folder / "model.rp", "--data", folder / "test.txt", "--out"]
    assert rankpolicy(*call, tmp_path / "scores.txt").status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["scores.txt"]
    (tmp_path / "folder.txt").mkdir()
    assert "--out must name a file" in refused(*call, tmp_path / "folder.txt")
