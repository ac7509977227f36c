"""Comparison of several methods on the same folds, with paired significance tests."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.folds import Fold
from rankpolicy.data.formats.trec import read_run, scores_of_run
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.declarations.settings import plain
from rankpolicy.display import short_repr
from rankpolicy.evaluation import MetricTable, PairedComparison, compare_tables, evaluate
from rankpolicy.executors import Executor, Shared, opened
from rankpolicy.experiments.selection import Methods, MethodToRun, Selection, fit_best, methods_to_run, settings_to_try
from rankpolicy.metrics import as_reward, parse_metric, parse_metrics
from rankpolicy.optional import require
from rankpolicy.types import Conventions, RankPolicyError, check_name

if TYPE_CHECKING:
    import polars

# The file of a run, or its scores by query id and item id, by a name of the user's choice.
Runs = Mapping[str, str | os.PathLike[str] | Mapping[str, Mapping[str, float]]]
ReportFit = Callable[[str, str, MetricTable], None]  # called with the method, the fold and its test metrics


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """The result of ``compare_rankers``: methods and folds in the order they were given.

    Parameters
    ----------
    fold_names
        Names of the folds.
    tables
        For each method, the test metrics of every query, one table per fold. Runs of outside rankers come after the methods.
    selections
        For each method, the chosen and fitted ranker of every fold; runs of outside rankers have none.
    significance
        Paired tests between all methods, or between the baseline and every other method, over the test queries of all folds.
    conventions
        The conventions under which the metrics were computed.
    baseline
        Name of the method that the others were compared with; None where all pairs were compared.
    """

    fold_names: tuple[str, ...]
    tables: dict[str, tuple[MetricTable, ...]]
    selections: dict[str, tuple[Selection, ...]]
    significance: tuple[PairedComparison, ...]
    conventions: Conventions
    baseline: str | None = None

    __repr__ = short_repr

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods."""
        return tuple(self.tables)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return next(iter(self.tables.values()))[0].names

    def per_fold(self, method: str, metric: str) -> list[float]:
        """Mean over the test queries of each fold.

        Parameters
        ----------
        method, metric
            Names of a method and a metric.
        """
        return [table.means[metric] for table in self.tables[method]]

    def mean(self, method: str, metric: str) -> float:
        """Mean over folds of the means over queries, as LETOR reports it.

        Parameters
        ----------
        method, metric
            Names of a method and a metric.
        """
        return float(np.mean(self.per_fold(method, metric)))

    @property
    def means(self) -> dict[str, dict[str, float]]:
        """Mean over folds by method and metric."""
        return {method: {metric: self.mean(method, metric) for metric in self.metrics} for method in self.methods}

    def best_method(self, metric: str) -> str:
        """The method with the best mean over folds: the highest, or the lowest of a metric such as avg_rank. The first wins a tie.

        Parameters
        ----------
        metric
            Name of the metric.
        """
        sign = -1 if _lower_is_better(metric) else 1
        return max(self.methods, key=lambda method: np.nan_to_num(sign * self.mean(method, metric), nan=-math.inf))

    @property
    def pooled(self) -> dict[str, MetricTable]:
        """For each method, one table with the test queries of all folds."""
        return {method: _pooled(tables) for method, tables in self.tables.items()}

    def to_frame(self) -> polars.DataFrame:
        """A polars frame with one row per method and test query: method, fold, ``query_id`` and one column per metric; NaN is null."""
        require("polars", "A comparison as a frame")
        import polars

        return polars.concat(
            table.to_frame().select(polars.lit(method).alias("method"), polars.lit(fold).alias("fold"), polars.all())
            for method, tables in self.tables.items()
            for fold, table in zip(self.fold_names, tables, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """Means, folds, significance, conventions and chosen settings as plain values for JSON; NaN becomes None."""
        return {
            "methods": {
                method: {
                    metric: {
                        "mean": _or_none(self.mean(method, metric)),
                        "per_fold": [_or_none(value) for value in self.per_fold(method, metric)],
                    }
                    for metric in self.metrics
                }
                for method in self.methods
            },
            "significance": [
                {**asdict(comparison), "difference": _or_none(comparison.difference)}
                for comparison in self.significance
            ],
            "baseline": self.baseline,
            "conventions": asdict(self.conventions),
            "folds": list(self.fold_names),
            "queries": [len(table) for table in self.tables[self.methods[0]]],
            "settings": {
                method: [{name: plain(value) for name, value in selection.settings.items()} for selection in selections]
                for method, selections in self.selections.items()
            },
        }


@checked_kinds
def compare_rankers(
    folds: Sequence[Fold],
    methods: Methods,
    metrics: str | Sequence[object] = ("ndcg@10", "map"),
    *,
    conventions: Conventions = Conventions(),
    tune: bool = True,
    baseline: str | None = None,
    runs: Runs | None = None,
    random_state: int = 0,
    progress: bool | None = None,
    executor: Executor | str | None = None,
    report_fit: ReportFit | None = None,
) -> Comparison:
    """Fit every method on the training data of every fold, measure it on the test data, and test the differences.

    Paired tests are over the test queries of all folds, Holm-adjusted over all comparisons of a test: of all pairs of methods, or only
    those with a baseline.

    Parameters
    ----------
    folds
        The folds, from ``read_folds`` or made by hand.
    methods
        A list of method names; a mapping from method names to settings; or a mapping from names of your choice to pairs of a method name
        and settings, such as ``{"linear": ("pg-rank", {"model": "linear"})}``, which lets one method appear several times.
    metrics
        The metrics to measure: names separated by commas, or a list of names, metrics and functions of rankings.
    conventions
        Gain, value of queries without relevant items and the like.
    tune
        Let each method choose among its ``settings_to_try`` on the validation data of each fold; otherwise it takes its defaults.
    baseline
        Name of the method or run that all others are compared with, chosen before looking at the results; p-values are then adjusted for
        these comparisons only. None (the default) compares all pairs.
    runs
        Rankings of the test queries by other software, by names of your choice: the path of a TREC run, or scores by query id and item id,
        as ``rp.data.read_run`` returns them. A run must rank every item of every test query of every fold; other queries in it are ignored.
    random_state
        Seed of the rankers (unless their settings have one) and of the significance tests.
    progress
        Show a progress bar for each fit; None: when stderr is a terminal.
    executor
        Where the methods are fitted: "serial", "processes", "ray", or an executor such as ``rp.executors.Processes(4)``. None: one after
        the other in this process. The results do not depend on it.
    report_fit
        Called after every fit with the name of the method, the name of the fold and the test metrics.
    """
    if len(folds) == 0:
        raise RankPolicyError("a comparison needs at least one fold; got none.")
    to_run = {
        name: replace(method, settings={"random_state": random_state, **method.settings})
        for name, method in methods_to_run(methods).items()
    }
    if isinstance(metrics, str):
        measures: Sequence[object] = parse_metrics(metrics, conventions)
    else:
        measures = [as_reward(metric, conventions) for metric in metrics]
    for method in to_run.values():
        settings_to_try(method.ranker_class, method.settings)
    outside = _scores_of_runs(runs or {}, folds, methods=to_run)
    check_name("baseline", baseline, [*to_run, *outside])
    # With any scores: a metric that these labels do not allow is refused before the training.
    for fold in folds:
        evaluate(np.zeros(fold.test.num_items), fold.test, measures, conventions=conventions)

    measured: dict[tuple[int, str], tuple[Selection, MetricTable]] = {}
    with opened(executor) as chosen:
        shared = [chosen.share(fold) for fold in folds]
        tasks = [_Task(fold, index, method) for index, fold in enumerate(shared) for method in to_run.values()]

        def keep(number: int, result: tuple[Selection, MetricTable]) -> None:
            task = tasks[number]
            measured[task.fold_index, task.method.name] = result
            if report_fit is not None:
                report_fit(task.method.name, folds[task.fold_index].name, result[1])

        fit_progress = progress if chosen.name == "serial" else False
        fit = partial(_fit_and_measure, measures, conventions, None if tune else 1, fit_progress)
        chosen.map(fit, tasks, report=keep)
    indices = range(len(folds))
    tables = {method: tuple(measured[index, method][1] for index in indices) for method in to_run}
    for name, scores in outside.items():
        tables[name] = tuple(
            evaluate(of_fold, fold.test, measures, conventions=conventions)
            for of_fold, fold in zip(scores, folds, strict=True)
        )
    pooled = {method: _pooled(of_folds) for method, of_folds in tables.items()}
    tests = compare_tables(pooled, baseline=baseline, random_state=random_state) if len(pooled) > 1 else ()
    return Comparison(
        fold_names=tuple(fold.name for fold in folds),
        tables=tables,
        selections={method: tuple(measured[index, method][0] for index in indices) for method in to_run},
        significance=tuple(tests),
        conventions=conventions,
        baseline=baseline,
    )


class _Task(NamedTuple):
    """One method on one fold."""

    fold: Shared[Fold]
    fold_index: int
    method: MethodToRun


def _fit_and_measure(
    measures: Sequence[object],
    conventions: Conventions,
    max_candidates: int | None,
    progress: bool | None,
    task: _Task,
) -> tuple[Selection, MetricTable]:
    fold, method = task.fold.get(), task.method
    selection = fit_best(
        method.ranker_class,
        method.settings,
        fold.train,
        fold.valid,
        max_candidates=max_candidates,
        progress=progress,
    )
    return selection, evaluate(selection.ranker, fold.test, measures, conventions=conventions)


def _scores_of_runs(
    runs: Runs, folds: Sequence[Fold], *, methods: Mapping[str, MethodToRun]
) -> dict[str, list[NDArray[np.float64]]]:
    """Scores of the test items of every fold by the name of the run."""
    scores_by_run = {}
    for name, run in runs.items():
        if name in methods:
            raise RankPolicyError(f"a run must have a name of its own; {name!r} is a method of this comparison.")
        scores = run if isinstance(run, Mapping) else read_run(run)
        scores_by_run[name] = [
            scores_of_run(scores, fold.test, name=f"the run {name!r} in {fold.name}") for fold in folds
        ]
    return scores_by_run


def _pooled(tables: Sequence[MetricTable]) -> MetricTable:
    return MetricTable(
        query_ids=np.concatenate([table.query_ids for table in tables]),
        names=tables[0].names,
        values=np.concatenate([table.values for table in tables]),
        conventions=tables[0].conventions,
        query_weights=None
        if tables[0].query_weights is None
        else np.concatenate([table.query_weights for table in tables if table.query_weights is not None]),
    )


def _lower_is_better(metric: str) -> bool:
    try:
        return parse_metric(metric).lower_is_better
    except RankPolicyError:  # the name of a user's own function
        return False


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
