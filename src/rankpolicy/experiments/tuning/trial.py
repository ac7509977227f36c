"""One trial of a search: a fit that may be stopped at a rung of successive halving; and what all of them found."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import plain
from rankpolicy.display import short_repr
from rankpolicy.executors.executor import Shared
from rankpolicy.experiments.tuning.space import fresh
from rankpolicy.optional import require
from rankpolicy.rankers.base import Ranker
from rankpolicy.training.callbacks import Callback, TrainingProgress
from rankpolicy.types import RankPolicyError

REDUCTION = 3  # of the trials that reach a rung, one in so many goes on
NUM_RUNGS = 3


def rungs(num_iterations: int) -> tuple[int, ...]:
    """After how many iterations (epochs, trees) trials are compared: a third of all, a ninth, and so on, in ascending order.

    >>> rungs(100), rungs(2)
    ((4, 12, 34), (1,))
    """
    return tuple(sorted({math.ceil(num_iterations / REDUCTION**k) for k in range(1, NUM_RUNGS + 1)} - {num_iterations}))


def cutoffs(curves: Sequence[Sequence[float]], num_iterations: int) -> dict[int, float]:
    """The score that a trial must reach at each rung to be among the best third, given the trials before it.

    A trial that ended before a rung counts there with its best score; one that was stopped before, with what it had.

    >>> cutoffs([[0.1, 0.2], [0.3, 0.3], [0.5, 0.4]], 3)
    {1: 0.5}
    """
    scored = [curve for curve in curves if len(curve)]
    if len(scored) < REDUCTION:
        return {}
    lowest = {}
    for rung in rungs(num_iterations):
        reached = sorted((max(curve[:rung]) for curve in scored), reverse=True)
        lowest[rung] = reached[max(1, len(reached) // REDUCTION) - 1]
    return lowest


class Rungs(Callback):
    """Records the validation score after every iteration, and stops training at a rung where it is below the cutoff."""

    def __init__(self, cutoffs: Mapping[int, float]) -> None:
        self.cutoffs = dict(cutoffs)
        self.curve: list[float] = []
        self.num_iterations = 0
        self.was_stopped = False

    def on_iteration(self, progress: TrainingProgress) -> bool:
        """Take the validation score; whether to stop."""
        self.num_iterations = progress.num_iterations
        score = next((value for name, value in progress.metrics.items() if name.startswith("validation ")), None)
        if score is None:
            return False
        self.curve.append(float(score))
        cutoff = self.cutoffs.get(len(self.curve))
        self.was_stopped = cutoff is not None and max(self.curve) < cutoff
        return self.was_stopped


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialTask:
    """What a trial is given; its outcome depends on nothing else."""

    number: int
    settings: Mapping[str, Any]
    seed: int | None
    cutoffs: Mapping[int, float] = field(default_factory=dict)

    __repr__ = short_repr


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """One trial of a search.

    Parameters
    ----------
    number
        Its number, from 0. Trial 0 is the ranker as it was given.
    settings
        The settings that were tried, of those that are searched.
    seed
        The random state of the ranker.
    state
        "complete"; "stopped" by successive halving; or "failed" where the ranker refused the settings.
    score
        The best validation score; None for a failed trial.
    curve
        Validation scores after each epoch or tree; empty for rankers that are fitted at once.
    best_iteration
        The iteration whose state the ranker keeps.
    num_iterations
        How many iterations there could have been.
    seconds
        How long it took.
    error
        Why it failed; empty otherwise.
    """

    number: int
    settings: dict[str, Any]
    seed: int | None
    state: Literal["complete", "stopped", "failed"]
    score: float | None
    curve: tuple[float, ...] = ()
    best_iteration: int | None = None
    num_iterations: int = 0
    seconds: float = 0.0
    error: str = ""

    __repr__ = short_repr


def run_trial(shared: Shared[tuple[Ranker, RankingDataset, RankingDataset]], task: TrialTask) -> Trial:
    """Fit the ranker with the settings of a trial."""
    unfitted, train, valid = shared.get()
    rungs, start = Rungs(task.cutoffs), time.perf_counter()
    trial = Trial(number=task.number, settings=dict(task.settings), seed=task.seed, state="failed", score=None)
    try:
        ranker = trial_ranker(unfitted, task.settings, task.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same note thirty times over; the last fit shows it
            ranker.fit(train, valid=valid, callbacks=[rungs], progress=False)
    except RankPolicyError as error:
        return replace(trial, seconds=time.perf_counter() - start, error=str(error))
    if ranker.best_score_ is None:
        raise RankPolicyError(
            f"{type(ranker).__name__} must measure validation data to be tuned by it; it has no best_score_."
        )
    return replace(
        trial,
        seed=ranker.get_params().get("random_state"),
        state="stopped" if rungs.was_stopped else "complete",
        score=float(ranker.best_score_),
        curve=tuple(rungs.curve),
        best_iteration=ranker.best_iteration_,
        num_iterations=rungs.num_iterations,
        seconds=time.perf_counter() - start,
    )


def trial_ranker(ranker: Ranker, settings: Mapping[str, Any], seed: int | None) -> Ranker:
    """The unfitted ranker of a trial."""
    has_seed = "random_state" in ranker.get_params()
    return fresh(ranker, {**settings, **({"random_state": seed} if has_seed and seed is not None else {})})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tuned:
    """The ranker with the best settings on validation data, and all trials.

    Parameters
    ----------
    ranker
        The ranker, fitted with the settings and the seed of the best trial.
    settings
        The settings of the best trial, of those that were searched.
    best_trial
        The number of the best trial; 0 is the ranker as it was given.
    trials
        All trials, by number.
    metric
        Name of the validation metric that chose.
    importance
        Share of the variance of scores that each setting explains; None where there are too few trials, or no scikit-learn.
    scheduler
        How trials were stopped early: "asha" or "none".
    """

    ranker: Ranker
    settings: dict[str, Any]
    best_trial: int
    trials: tuple[Trial, ...]
    metric: str
    importance: dict[str, float] | None
    scheduler: str

    __repr__ = short_repr

    @property
    def best_so_far(self) -> list[float]:
        """The best validation score up to each trial."""
        scores: list[float] = []
        for trial in self.trials:
            score = float("-inf") if trial.score is None else trial.score
            scores.append(max(score, scores[-1] if scores else score))
        return scores

    @property
    def score(self) -> float:
        """The validation score of the best trial."""
        assert self.best.score is not None
        return self.best.score

    @property
    def best(self) -> Trial:
        """The best trial."""
        # Not trials[best_trial]: a study that was interrupted, and then asked for fewer trials, has gaps.
        return next(trial for trial in self.trials if trial.number == self.best_trial)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the ranker, as JSON can hold it."""
        return {
            "method": self.ranker.name,
            "metric": self.metric,
            "scheduler": self.scheduler,
            "best_trial": self.best_trial,
            "settings": {name: plain(value) for name, value in self.settings.items()},
            "score": self.score,
            "score_as_given": self.trials[0].score,
            "importance": self.importance,
            "trials": [_trial_row(trial) | {"curve": list(trial.curve)} for trial in self.trials],
        }

    def to_frame(self) -> Any:
        """The trials as a polars frame, one row per trial."""
        polars = require("polars", "A frame of trials")
        rows = []
        for trial in self.trials:
            row = _trial_row(trial)
            settings = row.pop("settings")
            rows.append(row | {n: str(v) if isinstance(v, list | tuple) else v for n, v in settings.items()})
        return polars.DataFrame(rows, infer_schema_length=None)


def _trial_row(trial: Trial) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "state": trial.state,
        "score": trial.score,
        "iterations": len(trial.curve),
        "best_iteration": trial.best_iteration,
        "seconds": round(trial.seconds, 3),
        "seed": trial.seed,
        "error": trial.error,
        "settings": {name: plain(value) for name, value in trial.settings.items()},
    }
