"""Rankings of outside rankers in a comparison: TREC runs, matched with the test data of every fold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.folds import Fold
from rankpolicy.data.formats.trec import read_run, scores_of_run
from rankpolicy.types import RankPolicyError

# The file of a run, or its scores by query id and item id, by a name of the user's choice.
Runs = Mapping[str, str | os.PathLike[str] | Mapping[str, Mapping[str, float]]]


def scores_of_runs(
    runs: Runs, folds: Sequence[Fold], *, taken: Iterable[str] = ()
) -> dict[str, list[NDArray[np.float64]]]:
    """Scores of the test items of every fold by the name of the run.

    Parameters
    ----------
    runs
        For each run its file, or its scores as ``read_run`` returns them. A run must rank every test query of every fold.
    folds
        The folds.
    taken
        Names that runs must not have: those of methods.
    """
    found = {}
    for name, given in runs.items():
        if name in taken:
            raise RankPolicyError(f"a run must have a name of its own; {name!r} is a method of this comparison.")
        scores = given if isinstance(given, Mapping) else read_run(given)
        found[name] = [scores_of_run(scores, fold.test, name=f"the run {name!r} in {fold.name}") for fold in folds]
    return found
