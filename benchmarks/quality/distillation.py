"""``python -m benchmarks.quality.distillation [--folds N] [--out FOLDER] [--json FILE]``: NDCG@10 that trees lose against their teacher.

Each teacher is fitted on the training data of a set, and ``rp.distil`` makes 300 trees of it from the same items. Differences are paired by
test query, intervals are of their mean over queries, and pooled every set has the same weight. Fitted teachers are kept in the folder.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import rankpolicy as rp
from benchmarks.circumstances import circumstances
from benchmarks.quality.sets import folds_of
from rankpolicy.data.folds import Fold
from rankpolicy.evaluation.measure import evaluate_scores
from rankpolicy.metrics import as_reward
from rankpolicy.rankers import Ranker

SETS = ("mq2008", "mq2007", "generated: few features", "generated: few of many features")
TEACHERS = {
    "AutoRanker": lambda: rp.AutoRanker(),
    "PGRank": lambda: rp.PGRank(),
    "FairPGRank": lambda: rp.FairPGRank(fairness="individual", strength=1.0),
}
NUM_TREES = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=1, help="Folds or draws of each set.")
    parser.add_argument("--out", type=Path, default=Path("runs/distillation"), help="Where fitted teachers are kept.")
    parser.add_argument("--json", type=Path, help="A file for the result.")
    arguments = parser.parse_args()
    if "RANKPOLICY_DATA" not in os.environ:
        sys.exit("Set RANKPOLICY_DATA to the folder of the datasets.")
    arguments.out.mkdir(parents=True, exist_ok=True)
    data = Path(os.environ["RANKPOLICY_DATA"])
    losses: dict[str, dict[str, Any]] = {teacher: {} for teacher in TEACHERS}
    for name in SETS:
        folds = folds_of(name, data, "test")[: arguments.folds]
        for teacher in TEACHERS:
            measured = [values(teacher, f"{name}-{number}", fold, arguments.out) for number, fold in enumerate(folds)]
            losses[teacher][name] = loss(np.concatenate(measured))
            print(teacher, name, losses[teacher][name], file=sys.stderr, flush=True)
    result = {"losses": losses, "pooled": {teacher: pooled(by_set) for teacher, by_set in losses.items()}}
    if arguments.json:
        arguments.json.write_text(json.dumps(result | circumstances(), indent=1) + "\n")
    print(markdown(result))


def values(teacher: str, cell: str, fold: Fold, folder: Path) -> Any:
    """NDCG@10 of the teacher and of its trees (test query, 2), with the seconds that the trees took in a third column."""
    file = folder / f"{cell}-{teacher}.rp".replace(" ", "_").replace(":", "")
    if not file.is_file():
        TEACHERS[teacher]().fit(fold.train, valid=fold.valid, progress=False).save(file)
    ranker = rp.load(file)
    assert isinstance(ranker, Ranker)
    started = time.process_time()
    trees = rp.distil(ranker, fold.train, num_trees=NUM_TREES)
    seconds = time.process_time() - started
    metric = [as_reward("ndcg@10")]
    columns = [evaluate_scores(model._scores(fold.test), fold.test, metric)[:, 0] for model in (ranker, trees)]
    return np.stack([*columns, np.full(fold.test.num_queries, seconds)], axis=1)


def loss(columns: Any) -> dict[str, float]:
    """The means of teacher and trees, what the trees lose, and the standard error of that."""
    difference = columns[:, 0] - columns[:, 1]
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    numbers = {
        "teacher": columns[:, 0].mean(),
        "trees": columns[:, 1].mean(),
        "loss": difference.mean(),
        "error": error,
    }
    return {name: round(float(number), 5) for name, number in numbers.items()} | {"seconds": round(columns[0, 2], 1)}


def pooled(by_set: dict[str, dict[str, float]]) -> dict[str, float]:
    """The mean loss over sets, and its standard error over queries."""
    errors = np.array([row["error"] for row in by_set.values()])
    mean = float(np.mean([row["loss"] for row in by_set.values()]))
    return {"loss": round(mean, 5), "error": round(float(np.sqrt((errors**2).sum()) / len(errors)), 5)}


def markdown(result: dict[str, Any]) -> str:
    """One row per teacher and set."""
    lines = ["| teacher | set | NDCG@10 | of its trees | loss, 95 % interval |", "|---|---|---|---|---|"]
    for teacher, by_set in result["losses"].items():
        for name, row in by_set.items():
            lines.append(f"| {teacher} | {name} | {row['teacher']:.4f} | {row['trees']:.4f} | {_interval(row)} |")
        lines.append(f"| **{teacher}** | **all, same weight** | | | {_interval(result['pooled'][teacher])} |")
    return "\n".join(lines)


def _interval(row: dict[str, float]) -> str:
    low, high = row["loss"] - 1.96 * row["error"], row["loss"] + 1.96 * row["error"]
    return f"{row['loss']:+.4f} [{low:+.4f}, {high:+.4f}]"


if __name__ == "__main__":
    main()
