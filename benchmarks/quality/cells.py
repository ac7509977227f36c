"""One cell of the benchmark: a method on a fold of a set with a seed, kept in a file as soon as it is done."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rankpolicy as rp
from benchmarks.quality.methods import METHODS, SEEDED
from benchmarks.quality.sets import NUM_FOLDS, SEEDS, folds_of
from rankpolicy.data.folds import Fold
from rankpolicy.executors import Processes

METRICS = ("ndcg@10", "map")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A fit and its evaluation.

    Parameters
    ----------
    set
        The name of the set.
    fold
        The number of its fold or draw.
    method
        The method.
    seed
        Its seed.
    """

    set: str
    fold: int
    method: str
    seed: int

    def file(self, folder: Path) -> Path:
        """Where its values are kept."""
        name = f"{self.set}__{self.fold}__{self.method}__{self.seed}.npz"
        return folder / name.replace(" ", "_").replace(",", "").replace(":", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where data comes from and values go.

    Parameters
    ----------
    data
        The folder of the datasets.
    stage
        "dev" or "test".
    folder
        Where cells are kept.
    """

    data: Path
    stage: str
    folder: Path


def cells_of(sets: list[str], methods: list[str], num_folds: int | None = None) -> list[Cell]:
    """All cells, those of a set together; methods that depend on chance get all seeds of a set, where it has several."""
    return [
        Cell(set=name, fold=fold, method=method, seed=seed)
        for name in sets
        for fold in range(NUM_FOLDS[name])[:num_folds]
        for method in methods
        for seed in range(SEEDS.get(name, 1) if method in SEEDED else 1)
    ]


def fit_missing(cells: list[Cell], place: Place, *, jobs: int) -> None:
    """Fit the cells that are not kept yet, as many processes at once as ``jobs``."""
    missing = [cell for cell in cells if not cell.file(place.folder).is_file()]
    with Processes(jobs) as executor:
        results = executor.as_finished(partial(fit_cell, place), missing)
        for done, (number, (values, seconds)) in enumerate(results, 1):
            cell, means = missing[number], np.nanmean(values, axis=0).round(4)
            print(
                f"{done} of {len(missing)}: {cell.set}, fold {cell.fold}, {cell.method}, seed {cell.seed}: {means}, "
                f"{seconds:.0f} s of CPU",
                file=sys.stderr,
                flush=True,
            )


def fit_cell(place: Place, cell: Cell) -> tuple[NDArray[np.float64], float]:
    """Values (query, metric) on the test data of the fold, and seconds of CPU; kept in a file that appears whole."""
    fold = _folds(place.data, place.stage, cell.set)[cell.fold]
    started = time.process_time()
    scores = METHODS[cell.method](fold.train, fold.valid, fold.test, cell.seed)
    seconds = time.process_time() - started
    values = rp.evaluate(scores, fold.test, list(METRICS)).values
    file = cell.file(place.folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial.npz")
    np.savez(partial, values=values, seconds=seconds)
    partial.replace(file)
    return values, seconds


def kept(cell: Cell, folder: Path) -> tuple[NDArray[np.float64], float]:
    """Values and seconds of a cell that is done."""
    content = np.load(cell.file(folder))
    return content["values"], float(content["seconds"])


@lru_cache(maxsize=1)
def _folds(data: Path, stage: str, name: str) -> list[Fold]:
    return folds_of(name, data, stage)
