"""What a search found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankpolicy.declarations.settings import plain
from rankpolicy.display import short_repr
from rankpolicy.experiments.tuning.trial import Trial
from rankpolicy.optional import require
from rankpolicy.rankers.base import Ranker


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
