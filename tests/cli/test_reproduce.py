import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import rankpolicy
from reproductions import TARGETS, Claim, Outcome, Target


@pytest.fixture
def target(monkeypatch):
    """A target whose one claim has an interval as told."""

    def add(low, high):
        def run(setup):
            claim = Claim(claim="ours is above theirs", paper="0.5", ours="0.4", low=low, high=high, above=0)
            return Outcome(rows=({"method": "ours", "value": 0.4}, {"method": "theirs", "note": "x"}), claims=(claim,))

        monkeypatch.setitem(TARGETS, "paper/table", Target(name="paper/table", what="a table", run=run))

    return add


@pytest.mark.parametrize(
    ("interval", "verdict", "options", "status"),
    [
        ((1, 2), "holds", [], 0),
        ((-1, 2), "not shown", [], 0),
        ((-2, -1), "contradicted", [], 1),
        ((-2, -1), "contradicted", ["--smoke"], 0),
    ],
)
def test_the_exit_status_tells_of_a_contradicted_statement(
    rankpolicy, target, tmp_path, interval, verdict, options, status
):
    target(*interval)
    result = rankpolicy("reproduce", "paper/table", "--out", tmp_path, "--json", *options)
    assert result.status == status
    low, high = interval
    shown = {"claim": "ours is above theirs", "paper": "0.5", "ours": "0.4", "low": low, "high": high, "above": 0}
    assert result.json["claims"] == [shown | {"verdict": verdict, "holds": verdict == "holds"}]
    [statement] = result.json["statements"]
    assert (statement["statement"], statement["verdict"]) == ("ours is above theirs", verdict)
    assert result.json["rows"][0] == {"method": "ours", "value": 0.4}
    assert (tmp_path / "rows.csv").read_text() == "method,value,note\nours,0.4,\ntheirs,,x\n"


def test_a_table_for_people(rankpolicy, target, tmp_path):
    target(-2, -1)
    shown = rankpolicy("reproduce", "paper/table", "--out", tmp_path).stdout
    assert "ours is above theirs" in shown
    assert "contradicted" in shown
    assert "0.4000" in shown


def test_the_list(rankpolicy):
    assert "fair-pg-rank/table1" in rankpolicy("reproduce", "--list").stdout
    listed = rankpolicy("reproduce", "--list", "--json").json["targets"]
    assert {target["target"] for target in listed} == set(TARGETS)


def test_wrong_input(refused, monkeypatch):
    monkeypatch.delenv("RANKPOLICY_DATA", raising=False)
    assert "Did you mean 'fair-pg-rank/table1'" in refused("reproduce", "fair-pg-rank/tabel1")
    assert "name what to run, one of: " in refused("reproduce")
    assert "device must be one that torch can use here" in refused("reproduce", "dcm/figure2a", "--device", "tpu")
    assert "say where with --data DIR" in refused("reproduce", "fair-pg-rank/table1")


def test_an_installed_package_has_no_reproductions(tmp_path):
    shutil.copytree(
        Path(rankpolicy.__file__).parent, tmp_path / "rankpolicy", ignore=shutil.ignore_patterns("__pycache__")
    )
    command = [sys.executable, "-c", "from rankpolicy.cli.main import main; main()", "reproduce", "--list"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(
        "error: the reproductions of the papers are in the repository, not in the installed package"
    )
    assert done.stderr.count("\n") == 1


def test_a_checkout_has_them_wherever_the_command_runs(tmp_path):
    command = [sys.executable, "-c", "from rankpolicy.cli.main import main; main()", "reproduce", "--list", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(Path(rankpolicy.__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)["targets"]) == len(TARGETS)


def test_the_wheel_holds_the_package_alone():
    root = Path(rankpolicy.__file__).parents[2]
    build = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert build["wheel"] == {"packages": ["src/rankpolicy"]}
    assert not (root / "src" / "rankpolicy" / "reproductions").exists()
