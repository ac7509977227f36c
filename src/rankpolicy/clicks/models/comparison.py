"""Several click models fitted to one log and measured on another."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.models.click_model import ClickModel, Perplexity
from rankpolicy.clicks.models.fit import ReportIteration, fit_with_settings
from rankpolicy.clicks.models.fit_settings import ClickFitSettings, PriorChoice, settings_by_model
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.display import short_repr
from rankpolicy.executors import Executor, opened

ReportModel = Callable[[str, int, float], None]  # the model, the iteration of EM and its objective per session


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A fitted model and how well it forecasts the test log."""

    model: ClickModel
    log_likelihood: float
    num_impossible: int  # sessions that the model rules out; a single one makes the log-likelihood -inf
    perplexity: Perplexity
    conditional_perplexity: Perplexity
    examination: NDArray[np.float64]  # (position,) the position effect

    __repr__ = short_repr

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers; None stands for infinity and for ranks where nothing was shown."""
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
    """Click models fitted to one log and measured on another.

    Parameters
    ----------
    models
        The fitted models and their measurements by name, in the order they were asked for.
    num_train_sessions
        Sessions they were fitted to.
    num_test_sessions
        Sessions they were measured on.
    """

    models: Mapping[str, Measured]
    num_train_sessions: int
    num_test_sessions: int

    __repr__ = short_repr

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers: train_sessions, test_sessions and for each model its measurements."""
        return {
            "train_sessions": self.num_train_sessions,
            "test_sessions": self.num_test_sessions,
            "models": {
                name: measured.to_dict()
                | {"log_likelihood_per_session": _plain(measured.log_likelihood / self.num_test_sessions)}
                for name, measured in self.models.items()
            },
        }


@checked_kinds
def compare_click_models(
    names: Sequence[str],
    train: ClickLog,
    test: ClickLog,
    *,
    prior: PriorChoice = ClickFitSettings.prior,
    iterations: int = ClickFitSettings.iterations,
    tolerance: float = ClickFitSettings.tolerance,
    executor: Executor | str | None = None,
    report_model: ReportModel | None = None,
) -> ClickComparison:
    """Fit several click models to one log and measure them on another.

    Parameters
    ----------
    names
        Names of click models.
    train
        The log to fit to.
    test
        The log to measure on.
    prior, iterations, tolerance
        As in ``fit_click_model``; each model is given those that it reads, and one that none of them reads must not be changed.
    executor
        Where EM counts the sessions of a large log, as in ``fit_click_model``.
    report_model
        Called with the model, the number of each iteration of EM and the objective per session.
    """
    settings = settings_by_model(names, prior=prior, iterations=iterations, tolerance=tolerance)
    train, test = train.collapsed(), test.collapsed()
    measured = {}
    with opened(executor) as chosen:
        models = [
            fit_with_settings(
                settings[name],
                train,
                executor=chosen,
                report_iteration=_report_of(name, report_model),
            )
            for name in names
        ]
    for name, model in zip(names, models, strict=True):
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


def _report_of(name: str, report_model: ReportModel | None) -> ReportIteration | None:
    if report_model is None:
        return None
    return lambda iteration, objective: report_model(name, iteration, objective)


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
