"""Command lines with odd words: exit status 0, 1 or 2 and at most one line of error, never a traceback.

``python -m tests.fuzz.command_lines 2000`` makes a longer run.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import resource
import shutil
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import rankpolicy as rp
from rankpolicy.cli.main import run as run_command
from tests.fuzz.examples import write_files
from tests.fuzz.odd_values import odd_word
from tests.service.logs import written_log

_MOST_BYTES = 12 << 30
_SMALL = ["--set", "epochs=1"]


def lines() -> list[list[str]]:
    """Command lines that work and take little time."""
    write_files()
    with open("run.toml", "w") as file:
        file.write('method = "regression"\ndata = "data.txt"\nout = "configured.rp"\n')
    columns = ["--qid", "qid", "--label", "label", "--ignore", "item_id"]
    trees = ["--set", "num_trees=2", "--set", "min_items_in_leaf=1"]
    rp.data.to_frame(rp.data.make_fair_synthetic(4)).write_csv("fair.csv")
    judged = rp.read_letor("data.txt")
    rp.data.write_run(judged, judged.labels, "full.trec")
    rp.estimate_position_bias(rp.read_click_log("log.csv"), num_resamples=2).save("bias.json")
    size = rp.load("model.rp").num_features_
    items = [{"id": name, "features": [place / 3] * size} for place, name in enumerate("abc")]
    visits = [("default", {"query": "q", "items": items})] * 30
    written_log(Path("service.db"), {"default": {"kind": "uniform"}}, visits, lambda number, shown: shown[: number % 2])
    with open("retrain.toml", "w") as file:
        file.write('[[retrain]]\npolicy = "default"\nmethod = "regression"\n')
    return [
        ["train", "--method", "lambdamart", "--data", "data.csv", *columns, "--out", "new.rp", *trees],
        ["train", "--method", "fair-pg-rank", "--data", "fair.csv", "--protected", "group", "--out", "new.rp", *_SMALL],
        ["evaluate", "model.rp", "--data", "data.csv", *columns, "--ties", "worst"],
        ["evaluate", "model.rp", "--data", "data.parquet", *columns, "--ties", "item_id"],
        ["predict", "model.rp", "--data", "data.csv", *columns, "--out", "scores.txt"],
        ["clicks", "bias", "log.csv", "--method", "all-pairs", "--resamples", "2", "--out", "biased"],
        ["sample-data", "sampled"],
        ["explain", "model.rp", "--data", "data.txt", "--method", "permutation", "--repeats", "1", "--out", "explained"],
        ["explain", "model.rp", "--data", "data.txt", "--query", "0", "--of", "expected_rank", "--samples", "2", "--json"],
        ["export", "model.rp", "--out", "model.onnx"],
        ["compare", "--data", "data.txt", "--folds", "2", "--methods", "regression", "--run", "other=full.trec",
         "--executor", "processes:1", "--baseline", "other", "--per-query", "queries.csv", "--no-tune", *_SMALL],
        ["service", "key", "new", "--db", "service.db", "--scopes", "rank"],
        ["service", "key", "list", "--db", "service.db", "--json"],
        ["service", "replay", "--db", "service.db"],
        ["service", "backup", "copied.db", "--db", "service.db"],
        ["service", "promote", "model.rp", "--db", "service.db", "--share", "10%"],
        ["service", "rollback", "--db", "service.db"],
        ["service", "export", "--db", "service.db", "--since", "2020-11-01", "--out", "logs"],
        ["service", "evaluate", "--db", "service.db", "--candidate", "model.rp", "--against", "default", "--out", "judged"],
        ["service", "delete", "--db", "service.db", "--before", "2001-01-01"],
        ["service", "retrain", "--config", "retrain.toml", "--db", "service.db"],
        ["doctor"],
        ["methods"],
        ["methods", "mlp", "--json"],
        ["train", "--method", "listnet", "--data", "data.txt", "--valid", "data.txt", "--out", "new.rp", *_SMALL, "--seed", "1"],
        ["train", "--method", "regression", "--data", "data.parquet", "--out", "new.rp", "--set", "model=linear"],
        ["train", "--config", "run.toml"],
        ["train", "--method", "listnet", "--data", "data.txt", "--out", "new.rp", "--checkpoint", "state", "--resume", *_SMALL],
        ["evaluate", "model.rp", "--data", "data.txt", "--metrics", "ndcg@10,map", "--gain", "exp2", "--empty", "0", "--max-label", "4"],
        ["evaluate", "model.rp", "--data", "data.parquet", "--per-query", "queries.csv", "--json"],
        ["predict", "model.rp", "--data", "data.txt", "--out", "scores.txt"],
        ["predict", "model.rp", "--data", "data.txt", "--out", "run.trec", "--sampled", "--seed", "3"],
        ["methods", "pg-rank"],
        ["clicks", "fit", "log.csv", "--models", "gctr", "--out", "fitted"],
        ["clicks", "bias", "log.csv", "--method", "all-pairs", "--resamples", "0"],
        ["simulate", "--steps", "20", "--runs", "1", "--bandits", "random", "--items", "4", "--cutoff", "2", "--out", "simulated"],
    ]  # fmt: skip


def changed(line: list[str], rng: random.Random) -> list[str]:
    """The line with words replaced, added, left out or repeated; what would take long is left as it is."""
    words = list(line)
    for _ in range(rng.choice([1, 1, 2, 3])):
        if len(words) < 2:
            words.append(odd_word(rng))
        place = rng.randrange(1, len(words))
        if words[place - 1] in ("--steps", "--runs", "--items", "--resamples", "--out", "--checkpoint"):
            continue
        what = rng.random()
        if what < 0.6:
            words[place] = odd_word(rng)
        elif what < 0.8:
            words.insert(place, odd_word(rng))
        elif what < 0.9:
            del words[place]
        else:
            words.insert(place, words[place])
    return words


def run(num_lines: int, *, seed: int) -> list[str]:
    """The lines that ended in a traceback or another status, with the reason."""
    rng, raw = random.Random(seed), []
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/work")
        os.chdir(f"{folder}/work")
        try:
            known = lines()
            for line in known:
                reason = _problem(line, {0})
                assert reason is None, (line, reason)
            shutil.copytree(".", f"{folder}/kept")
            for _ in range(num_lines):
                line = changed(rng.choice(known), rng)
                reason = _problem(line, {0, 1, 2})
                if reason is not None:
                    raw.append(f"{line}: {reason}")
                shutil.copytree(f"{folder}/kept", ".", dirs_exist_ok=True)  # a line may have written to its data
        finally:
            os.chdir(here)
    return raw


def _problem(line: list[str], allowed: set[int]) -> str | None:
    out, errors = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            status = run_command(line)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 0
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:100]} ({os.path.basename(place.filename)}:{place.lineno})"
    said = errors.getvalue()
    if status not in allowed or "Traceback" in said:
        return f"status {status}: {said[-300:]}"
    if status == 2 and said.count("error: ") != 1:
        return f"status 2 without one error: {said[-300:]!r}"
    return None


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    found = run(int(sys.argv[1]), seed=int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print("\n".join(found))
    print(f"{sys.argv[1]} command lines, {len(found)} raw exceptions")
    sys.exit(bool(found))
