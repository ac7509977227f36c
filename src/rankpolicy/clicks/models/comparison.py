"""Several click models fitted to one log and measured on another."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.models.base import ClickModel
from rankpolicy.clicks.models.fit import fit_click_model
from rankpolicy.clicks.models.perplexity import Perplexity
from rankpolicy.clicks.models.prior import UNIFORM, PriorChoice

ReportModel = Callable[[str, int, float], None]  # the model, the iteration of EM and its objective a session


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A fitted model and what it makes of the test log."""

    model: ClickModel
    log_likelihood: float
    num_impossible: int  # sessions that the model rules out; one makes the log-likelihood -inf
    perplexity: Perplexity
    conditional_perplexity: Perplexity
    examination: NDArray[np.float64]  # (position,) the position effect

    def to_json(self) -> dict[str, Any]:
        """Plain numbers; null stands for infinite and for ranks where nothing was shown."""
        return {
            "title": self.model.title,
            "log_likelihood": _plain(self.log_likelihood),
            "impossible_sessions": self.num_impossible,
            "perplexity": _plain(self.perplexity.overall),
            "perplexity_by_rank": [_plain(value) for value in self.perplexity.by_rank],
            "conditional_perplexity": _plain(self.conditional_perplexity.overall),
            "conditional_perplexity_by_rank": [_plain(value) for value in self.conditional_perplexity.by_rank],
            "examination_by_rank": [_plain(value) for value in self.examination],
            "iterations": len(self.model.objectives),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickComparison:
    """Click models by name, in the order they were asked for."""

    models: Mapping[str, Measured]
    num_train_sessions: int
    num_test_sessions: int

    def to_json(self) -> dict[str, Any]:
        return {
            "train_sessions": self.num_train_sessions,
            "test_sessions": self.num_test_sessions,
            "models": {
                name: measured.to_json()
                | {"log_likelihood_per_session": _plain(measured.log_likelihood / self.num_test_sessions)}
                for name, measured in self.models.items()
            },
        }


def compare_click_models(
    names: Sequence[str],
    train: ClickLog,
    test: ClickLog,
    *,
    prior: PriorChoice = UNIFORM,
    iterations: int = 200,
    tolerance: float = 1e-6,
    report_model: ReportModel | None = None,
) -> ClickComparison:
    """Fit each model to one log, with the settings of ``fit_click_model``, and measure it on the other."""
    train, test = train.collapsed(), test.collapsed()
    measured = {}
    for name in names:

        def report(iteration: int, objective: float, name: str = name) -> None:
            if report_model is not None:
                report_model(name, iteration, objective)

        model = fit_click_model(
            name, train, prior=prior, iterations=iterations, tolerance=tolerance, report_iteration=report
        )
        of_sessions = model.session_log_likelihoods(test)
        measured[name] = Measured(
            model=model,
            log_likelihood=float(of_sessions @ test.counts),
            num_impossible=int(test.counts[np.isneginf(of_sessions)].sum()),
            perplexity=model.perplexity(test),
            conditional_perplexity=model.conditional_perplexity(test),
            examination=model.examination(test),
        )
    return ClickComparison(models=measured, num_train_sessions=train.num_sessions, num_test_sessions=test.num_sessions)


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
