"""One trial of a search: a fit, and what came of it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.display import short_repr
from rankpolicy.executors.executor import Shared
from rankpolicy.experiments.tuning.halving import Rungs
from rankpolicy.experiments.tuning.space import fresh
from rankpolicy.rankers.base import Ranker
from rankpolicy.types import RankPolicyError


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
