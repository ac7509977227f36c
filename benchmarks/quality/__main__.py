"""``python -m benchmarks.quality [--stage dev|test] [--jobs N] [--json | --table] [--out FOLDER]``: every method on every set, resumable.

Each fit is kept in the folder as soon as it is done; an interrupted run goes on where it stopped, and cells may come from several machines
that write into the same folder. Means are over queries; pooled differences to AutoRanker are paired by query, every set with the same
weight.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from benchmarks.circumstances import circumstances
from benchmarks.quality.cells import Place, cells_of, fit_missing
from benchmarks.quality.methods import METHODS
from benchmarks.quality.results import summary, values_of
from benchmarks.quality.sets import SETS, STAGES
from benchmarks.quality.tables import markdown


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
    parser.add_argument("--jobs", type=int, default=1, help="Fits in parallel processes, each on one thread.")
    parser.add_argument("--list", action="store_true", help="Say which cells are kept and which are missing, and stop.")
    parser.add_argument("--json", action="store_true", help="Print the result as JSON.")
    parser.add_argument("--table", action="store_true", help="Print the result as Markdown tables (the default).")
    arguments = parser.parse_args()
    data = os.environ.get("RANKPOLICY_DATA")
    if data is None:
        sys.exit("Set RANKPOLICY_DATA to the folder of the datasets.")
    if arguments.jobs < 1:
        parser.error("--jobs must be 1 or more.")
    place = Place(data=Path(data), stage=arguments.stage, folder=arguments.out / arguments.stage)
    cells = cells_of(arguments.sets, arguments.methods, arguments.folds)
    if arguments.list:
        for cell in cells:
            state = "kept" if cell.file(place.folder).is_file() else "missing"
            print(f"{state:8}{cell.set}, fold {cell.fold}, {cell.method}, seed {cell.seed}")
        return
    fit_missing(cells, place, jobs=arguments.jobs)
    result = summary(*values_of(cells, place.folder, arguments.stage)) | {
        "stage": arguments.stage,
        **circumstances("xgboost-cpu", "catboost"),
    }
    print(json.dumps(result, indent=1) if arguments.json else markdown(result))


if __name__ == "__main__":
    main()
