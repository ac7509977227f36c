"""``python -m benchmarks.quality [--stage dev|test] [--json] [--out FOLDER]``: every method on every set, resumable.

Each fit is kept in the folder as soon as it is done; an interrupted run goes on where it stopped. The table has the means of NDCG@10
and MAP over queries, by set; the pooled differences to AutoRanker are paired by query, every set with the same weight.
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
from numpy.typing import NDArray

import rankpolicy as rp
from benchmarks.quality.methods import COMPETITORS, METHODS, OURS
from benchmarks.quality.sets import SETS, STAGES, folds_of

METRICS = ("ndcg@10", "map")
NUM_SEEDS = 1
Values = dict[tuple[str, str], NDArray[np.float64]]  # by set and method: (fold and query, metric)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--stage", choices=STAGES, default="test", help="dev: to choose defaults by; test: the frozen run."
    )
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS), help="Only these sets.")
    parser.add_argument(
        "--methods", nargs="*", choices=list(METHODS), default=list(METHODS), help="Only these methods."
    )
    parser.add_argument("--folds", type=int, default=None, help="Only so many folds or draws of each set.")
    parser.add_argument("--out", type=Path, default=Path("runs/quality"), help="Where fits are kept.")
    parser.add_argument("--json", action="store_true", help="Print the result as JSON.")
    arguments = parser.parse_args()
    data = os.environ.get("RANKPOLICY_DATA")
    if data is None:
        sys.exit("Set RANKPOLICY_DATA to the folder of the datasets.")
    values: Values = {}
    seconds: dict[str, float] = dict.fromkeys(arguments.methods, 0.0)
    for name in arguments.sets:
        folds = folds_of(name, Path(data), arguments.stage)[: arguments.folds]
        for method in arguments.methods:
            found = []
            for number, fold in enumerate(folds):
                file = (
                    arguments.out
                    / arguments.stage
                    / f"{name}__{number}__{method}.npz".replace(" ", "_").replace(",", "")
                )
                table, spent = _kept_or_fitted(file, method, fold)
                found.append(table)
                seconds[method] += spent
            values[name, method] = np.concatenate(found)
    result = _result(values, seconds, arguments.sets, arguments.methods)
    print(json.dumps(result | {"stage": arguments.stage}, indent=1) if arguments.json else _text(result))


def _kept_or_fitted(file: Path, method: str, fold: Any) -> tuple[NDArray[np.float64], float]:
    if file.is_file():
        kept = np.load(file)
        return kept["values"], float(kept["seconds"])
    started = time.process_time()
    tables = [
        rp.evaluate(METHODS[method](fold.train, fold.valid, fold.test, seed), fold.test, list(METRICS)).values
        for seed in range(NUM_SEEDS)
    ]
    spent = time.process_time() - started
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial.npz")
    np.savez(partial, values=np.mean(tables, axis=0), seconds=spent)
    partial.replace(file)
    print(
        f"{file.stem}: {np.nanmean(np.mean(tables, axis=0), axis=0).round(4)}, {spent:.0f} s of CPU",
        file=sys.stderr,
        flush=True,
    )
    return np.mean(tables, axis=0), spent


def _result(values: Values, seconds: dict[str, float], sets: list[str], methods: list[str]) -> dict[str, Any]:
    means = {
        method: {
            name: dict(zip(METRICS, np.nanmean(values[name, method], axis=0).round(5).tolist(), strict=True))
            for name in sets
        }
        for method in methods
    }
    ranks = {
        method: float(
            np.mean([1 + sum(means[o][s][m] > means[method][s][m] for o in methods) for s in sets for m in METRICS])
        )
        for method in methods
    }
    return {
        "means": means,
        "mean_rank": ranks,
        "cpu_seconds": {method: round(spent, 1) for method, spent in seconds.items()},
        "ahead": {other: _ahead(values, sets, other) for other in methods if other in COMPETITORS and OURS in methods},
    }


def _ahead(values: Values, sets: list[str], other: str) -> dict[str, Any]:
    """How far AutoRanker is ahead: by set, and pooled with the same weight for every set, each with its standard error over queries."""
    found: dict[str, Any] = {}
    for column, metric in enumerate(METRICS):
        by_set = {}
        for name in sets:
            difference = (values[name, OURS] - values[name, other])[:, column]
            difference = difference[~np.isnan(difference)]
            by_set[name] = (float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference))))
        pooled = float(np.mean([mean for mean, _ in by_set.values()]))
        error = float(np.sqrt(np.sum([error**2 for _, error in by_set.values()])) / len(by_set))
        found[metric] = {"pooled": [pooled, error], **{name: list(pair) for name, pair in by_set.items()}}
    return found


def _text(result: dict[str, Any]) -> str:
    lines = []
    for metric in METRICS:
        sets = list(next(iter(result["means"].values())))
        lines.append(f"{metric:34}" + "".join(f"{name[:14]:>15}" for name in sets) + "      mean rank    CPU s")
        for method, by_set in result["means"].items():
            cells = "".join(f"{by_set[name][metric]:15.4f}" for name in sets)
            lines.append(f"{method:34}{cells}{result['mean_rank'][method]:15.2f}{result['cpu_seconds'][method]:9.0f}")
        lines.append("")
        for other, ahead in result["ahead"].items():
            mean, error = ahead[metric]["pooled"]
            behind = [n for n, (m, e) in ahead[metric].items() if n != "pooled" and m < -2 * e]
            lines.append(
                f"ahead of {other:32}{mean:+.4f} ± {error:.4f}"
                + (f"   behind on {', '.join(behind)}" if behind else "")
            )
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
