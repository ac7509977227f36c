"""Fitting: closed form where there is one, otherwise expectation maximisation, the same few lines for every model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.log.log_pairs import LogView, pairs_of
from rankpolicy.clicks.models.click_model import ClickModel, needs_sessions_text
from rankpolicy.clicks.models.definition import Expectation, Parameters
from rankpolicy.clicks.models.fit_settings import (
    ClickFitSettings,
    Prior,
    PriorChoice,
    empirical_prior,
    first_prior,
    log_prior,
    posterior_mean,
)
from rankpolicy.clicks.models.members import CLICK_MODELS
from rankpolicy.clicks.models.shards import ExpectStep, e_step
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.executors import Executor, opened
from rankpolicy.types import RankPolicyError

_Fitted = tuple[Parameters, Expectation, list[float]]
ReportIteration = Callable[[int, float], None]  # the iteration, counted from 1, and the objective per session before it


@checked_kinds
def fit_click_model(
    name: str,
    log: ClickLog,
    *,
    prior: PriorChoice = ClickFitSettings.prior,
    iterations: int = ClickFitSettings.iterations,
    tolerance: float = ClickFitSettings.tolerance,
    executor: Executor | str | None = None,
    report_iteration: ReportIteration | None = None,
) -> ClickModel:
    """Fit a click model to a log.

    Pairs and positions that were never tried have the prior mean, or without a prior the mean over all that were.

    Parameters
    ----------
    name
        Name of the click model, one of ``rankpolicy.clicks.CLICK_MODELS``: pbm, dcm, dbn, ubm, ...
    log
        What was shown and clicked, as ``read_click_log`` reads it.
    prior
        Beta prior (a, b) of every parameter, which is estimated as (successes + a) / (trials + a + b); by default (1, 1). None: maximum
        likelihood. "empirical": fit once with (1, 1), estimate the prior of the attractions from the result, and fit again with it;
        better where most pairs were shown a few times only.
    iterations
        Most iterations of EM. 0 keeps the closed form that dcm and sdbn start from. Only for models fitted by EM.
    tolerance
        EM ends when an iteration gains less than this in log-likelihood plus log prior per session. Only for models fitted by EM.
    executor
        Where EM counts the sessions of a large log, in shards of queries: "serial", "processes", "ray", or an executor such as
        ``rp.executors.Ray(address="10.0.0.5:6379")``. None: in this process. The parameters are the same bits.
    report_iteration
        Called with the number of each iteration and the objective per session.

    >>> from rankpolicy.clicks import log_from_lists
    >>> log = log_from_lists(["a", "a", "a"], [["x", "y"]] * 3, [[1, 0], [0, 1], [1, 0]])
    >>> fit_click_model("dctr", log, prior=None).parameters["attraction"]
    array([0.66666667, 0.33333333])
    """
    settings = ClickFitSettings(model=name, prior=prior, iterations=iterations, tolerance=tolerance)
    return fit_with_settings(settings, log, executor=executor, report_iteration=report_iteration)


def fit_with_settings(
    settings: ClickFitSettings,
    log: ClickLog,
    *,
    executor: Executor | str | None = None,
    report_iteration: ReportIteration | None = None,
) -> ClickModel:
    """Fit the click model that the settings name to a log."""
    kind = CLICK_MODELS.named(settings.model)
    if kind.needs_sessions and not log.has_sessions:
        raise RankPolicyError(needs_sessions_text(kind.name))
    priors = dict.fromkeys(kind.axes, first_prior(settings.prior))
    with opened(executor) as chosen:
        pairs = pairs_of(log)
        view = pairs.view(log)
        parameters, counts = first_parameters(kind, view, priors)
        run = partial(_em, e_step(kind, view, chosen)) if kind.uses_em else _closed
        parameters, counts, objectives = run(parameters, counts, priors, settings, log.num_sessions, report_iteration)
        if settings.prior == "empirical":
            priors["attraction"] = empirical_prior(counts.successes["attraction"], counts.trials["attraction"])
            parameters = maximised(counts, priors)
            parameters, counts, second_objectives = run(
                parameters, counts, priors, settings, log.num_sessions, report_iteration
            )
            objectives += second_objectives
    defaults = {
        parameter: _default(counts.successes[parameter], counts.trials[parameter], priors[parameter])
        for parameter in kind.axes
    }
    shapes = kind.shapes(len(pairs), log.num_positions)
    cut = {parameter: values[tuple(map(slice, shapes[parameter]))] for parameter, values in parameters.items()}
    return kind(pairs=pairs, parameters=cut, defaults=defaults, priors=priors, objectives=tuple(objectives))


def first_parameters(
    kind: type[ClickModel], view: LogView, priors: Mapping[str, Prior]
) -> tuple[Parameters, Expectation]:
    """Where EM starts, or the fit in closed form, and the counts behind it. Arrays have one more entry for unknown pairs."""
    counts = kind.closed_form(view)
    if counts is not None:
        return maximised(counts, priors), counts
    shapes = kind.shapes(view.num_pairs + 1, view.num_positions)
    nothing = {name: np.zeros(shape) for name, shape in shapes.items()}
    halves = {name: np.full(shape, 0.5) for name, shape in shapes.items()}
    return halves, Expectation(successes=nothing, trials=nothing)


def maximised(counts: Expectation, priors: Mapping[str, Prior]) -> Parameters:
    """The M step: the posterior mean of each parameter."""
    return {
        name: posterior_mean(counts.successes[name], trials, priors[name]) for name, trials in counts.trials.items()
    }


def _closed(parameters: Parameters, counts: Expectation, *_: Any) -> _Fitted:
    """Nothing more to do for a model in closed form."""
    return parameters, counts, []


def _em(
    expect: ExpectStep,
    parameters: Parameters,
    counts: Expectation,
    priors: Mapping[str, Prior],
    settings: ClickFitSettings,
    num_sessions: int,
    report_iteration: ReportIteration | None,
) -> _Fitted:
    objectives: list[float] = []
    for iteration in range(settings.iterations):
        counts = expect(parameters)
        objective = counts.log_likelihood + sum(log_prior(parameters[name], priors[name]) for name in parameters)
        if report_iteration is not None:
            report_iteration(iteration + 1, objective / num_sessions)
        objectives.append(objective)
        parameters = maximised(counts, priors)
        if iteration and objectives[-1] - objectives[-2] < settings.tolerance * num_sessions:
            break
    return parameters, counts, objectives


def _default(successes: NDArray[np.float64], trials: NDArray[np.float64], prior: Prior) -> float:
    if sum(prior) > 0:
        return prior[0] / sum(prior)
    return float(successes.sum() / trials.sum()) if trials.sum() > 0 else 0.5
