"""A comparison on the terminal: metrics, significance against the baseline or the best method, conventions and chosen settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rankpolicy.cli.support.output import note, show, show_table, styled

if TYPE_CHECKING:
    from rich.text import Text

    from rankpolicy.experiments import Comparison


def show_comparison(comparison: Comparison, per_query: Path | None = None) -> None:
    """Print a comparison on stdout, and where the metrics of every query are."""
    from rankpolicy.reports.comparison_report import chosen_settings

    _show_metrics(comparison)
    if comparison.significance:
        _show_significance(comparison)
    show(str(comparison.conventions), dim=True)
    for method in comparison.methods:
        for text in chosen_settings(comparison, method):
            show(f"{method}: {text}", dim=True)
    if per_query is not None:
        note(f"metrics of {sum(map(len, comparison.tables[comparison.methods[0]]))} queries: {per_query}")


def _show_metrics(comparison: Comparison) -> None:
    from rankpolicy.reports.comparison_report import mean_text

    num_folds, num_queries = len(comparison.fold_names), sum(map(len, comparison.tables[comparison.methods[0]]))
    over = (
        f"mean over {num_folds} folds ± standard deviation between them" if num_folds > 1 else "mean over test queries"
    )
    best = {metric: comparison.best_method(metric) for metric in comparison.metrics}
    rows: list[list[str | Text]] = [
        [
            method,
            *(
                styled(mean_text(comparison, method, metric), "bold" if best[metric] == method else "")
                for metric in comparison.metrics
            ),
        ]
        for method in comparison.methods
    ]
    show_table(("method", *comparison.metrics), rows)
    show(f"{over}; {num_queries} test queries", dim=True)


def _show_significance(comparison: Comparison) -> None:
    from rankpolicy.reports.comparison_report import adjustment, p_text

    reference = comparison.baseline or comparison.best_method(comparison.metrics[0])
    tests = list(dict.fromkeys(paired.test for paired in comparison.significance))
    rows = []
    for method in comparison.methods:
        for metric in comparison.metrics if method != reference else ():
            paired = [p for p in comparison.significance if {p.a, p.b} == {method, reference} and p.metric == metric]
            difference = paired[0].difference if paired[0].a == method else -paired[0].difference
            p_values = {p.test: p_text(p.p_holm) for p in paired}
            rows.append([method, metric, f"{difference:+.4f}", *(p_values[test] for test in tests)])
    show_table((f"against {reference}", "metric", "difference", *tests), rows, numbers_from=2)
    show(adjustment(comparison), dim=True)
