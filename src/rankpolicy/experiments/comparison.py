"""Several methods on the same folds: learned, chosen, measured and tested alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankpolicy.data.folds import Fold
from rankpolicy.evaluation import MetricTable, PairedComparison, compare_tables, evaluate
from rankpolicy.experiments.selection import Selection, fit_best, settings_to_try
from rankpolicy.metrics import as_reward, parse_metric, parse_metrics
from rankpolicy.rankers.members import ranker_class_named
from rankpolicy.settings import plain
from rankpolicy.types import Conventions, RankPolicyError

ReportFit = Callable[[str, str, MetricTable], None]  # method, fold, its test metrics


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """What ``compare_rankers`` found; methods in the order asked for, folds in the order given."""

    fold_names: tuple[str, ...]
    tables: dict[str, tuple[MetricTable, ...]]  # of each method, a table a fold
    selections: dict[str, tuple[Selection, ...]]  # of each method, the fitted ranker of each fold
    significance: tuple[PairedComparison, ...]  # on the pooled queries
    conventions: Conventions

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self.tables)

    @property
    def metrics(self) -> tuple[str, ...]:
        return next(iter(self.tables.values()))[0].names

    def per_fold(self, method: str, metric: str) -> list[float]:
        """Mean over the queries of each fold's test data."""
        return [table.means[metric] for table in self.tables[method]]

    def mean(self, method: str, metric: str) -> float:
        """Mean over folds, as LETOR reports it."""
        return float(np.mean(self.per_fold(method, metric)))

    @property
    def means(self) -> dict[str, dict[str, float]]:
        """Mean over folds by method and metric."""
        return {method: {metric: self.mean(method, metric) for metric in self.metrics} for method in self.methods}

    def best_method(self, metric: str) -> str:
        """The method with the best mean over folds, the highest (of avg_rank the lowest); the first wins a tie."""
        sign = -1 if _lower_is_better(metric) else 1
        return max(self.methods, key=lambda method: np.nan_to_num(sign * self.mean(method, metric), nan=-math.inf))

    @property
    def pooled(self) -> dict[str, MetricTable]:
        """Of each method one table over the test queries of all folds."""
        return {method: _pooled(tables) for method, tables in self.tables.items()}

    def to_json(self) -> dict[str, Any]:
        """Means and folds by method, significance, conventions and chosen settings, as plain values; NaN is None."""
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
            "conventions": asdict(self.conventions),
            "folds": list(self.fold_names),
            "queries": [len(table) for table in self.tables[self.methods[0]]],
            "settings": {
                method: [{name: plain(value) for name, value in selection.settings.items()} for selection in selections]
                for method, selections in self.selections.items()
            },
        }


def compare_rankers(
    folds: Sequence[Fold],
    methods: Sequence[str] | Mapping[str, Mapping[str, Any]],
    metrics: str | Sequence[object] = ("ndcg@10", "map"),
    *,
    conventions: Conventions = Conventions(),
    tune: bool = True,
    random_state: int = 0,
    progress: bool | None = None,
    report_fit: ReportFit | None = None,
) -> Comparison:
    """Fit every method on every fold's training data and measure it on the fold's test data.

    ``methods`` are names, or settings by name. With ``tune`` each method chooses among its ``settings_to_try`` on the fold's validation
    data; without it takes its defaults. Paired tests are over the test queries of all folds, Holm-adjusted over all comparisons of a test.
    """
    if not folds:
        raise RankPolicyError("a comparison needs at least one fold; got none.")
    if not methods:
        raise RankPolicyError("a comparison needs at least one method, such as 'pg-rank'; got none.")
    given = methods if isinstance(methods, Mapping) else {method: {} for method in methods}
    settings = {method: {"random_state": random_state, **chosen} for method, chosen in given.items()}
    classes = {method: ranker_class_named(method) for method in settings}
    if isinstance(metrics, str):
        measures: Sequence[object] = parse_metrics(metrics, conventions)
    else:
        measures = [as_reward(metric, conventions) for metric in metrics]
    for method, ranker_class in classes.items():
        settings_to_try(ranker_class, settings[method])
    # Any scores will do here: a metric that these labels do not allow is found before the training, not after.
    for fold in folds:
        evaluate(np.zeros(fold.test.num_items), fold.test, measures, conventions=conventions)

    selections: dict[str, list[Selection]] = {method: [] for method in classes}
    tables: dict[str, list[MetricTable]] = {method: [] for method in classes}
    for fold in folds:
        for method, ranker_class in classes.items():
            selection = fit_best(
                ranker_class,
                settings[method],
                fold.train,
                fold.valid,
                max_candidates=None if tune else 1,
                progress=progress,
            )
            table = evaluate(selection.ranker, fold.test, measures, conventions=conventions)
            selections[method].append(selection)
            tables[method].append(table)
            if report_fit is not None:
                report_fit(method, fold.name, table)
    pooled = {method: _pooled(of_folds) for method, of_folds in tables.items()}
    return Comparison(
        fold_names=tuple(fold.name for fold in folds),
        tables={method: tuple(of_folds) for method, of_folds in tables.items()},
        selections={method: tuple(of_folds) for method, of_folds in selections.items()},
        significance=tuple(compare_tables(pooled, random_state=random_state)) if len(pooled) > 1 else (),
        conventions=conventions,
    )


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
