"""A comparison on the terminal: metrics, significance against the baseline or the best method, conventions and chosen settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.cli.support.output import console

if TYPE_CHECKING:
    from rankpolicy.experiments import Comparison


def print_comparison(comparison: Comparison) -> None:
    from rankpolicy.reports.comparison_report import chosen_settings

    out = console()
    _print_metrics(comparison)
    if comparison.significance:
        _print_significance(comparison)
    out.print(str(comparison.conventions), style="dim")
    for method in comparison.methods:
        for text in chosen_settings(comparison, method):
            out.print(f"{method}: {text}", style="dim", markup=False)


def _print_metrics(comparison: Comparison) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from rankpolicy.reports.comparison_report import mean_text

    num_folds, num_queries = len(comparison.fold_names), sum(map(len, comparison.tables[comparison.methods[0]]))
    over = (
        f"mean over {num_folds} folds ± standard deviation between them" if num_folds > 1 else "mean over test queries"
    )
    drawn = Table(box=SIMPLE_HEAD)
    drawn.add_column("method")
    best = {metric: comparison.best_method(metric) for metric in comparison.metrics}
    for metric in comparison.metrics:
        drawn.add_column(metric, justify="right")
    for method in comparison.methods:
        texts = {metric: mean_text(comparison, method, metric) for metric in comparison.metrics}
        drawn.add_row(
            method, *(f"[bold]{text}[/bold]" if best[metric] == method else text for metric, text in texts.items())
        )
    out = console()
    out.print(drawn)
    out.print(f"{over}; {num_queries} test queries", style="dim")


def _print_significance(comparison: Comparison) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from rankpolicy.reports.comparison_report import adjustment, p_text

    reference = comparison.baseline or comparison.best_method(comparison.metrics[0])
    tests = list(dict.fromkeys(paired.test for paired in comparison.significance))
    drawn = Table(box=SIMPLE_HEAD)
    drawn.add_column(f"against {reference}")
    drawn.add_column("metric")
    for name in ("difference", *tests):
        drawn.add_column(name, justify="right")
    for method in comparison.methods:
        for metric in comparison.metrics if method != reference else ():
            paired = [p for p in comparison.significance if {p.a, p.b} == {method, reference} and p.metric == metric]
            difference = paired[0].difference if paired[0].a == method else -paired[0].difference
            p_values = {p.test: p_text(p.p_holm) for p in paired}
            drawn.add_row(method, metric, f"{difference:+.4f}", *(p_values[test] for test in tests))
    out = console()
    out.print(drawn)
    out.print(adjustment(comparison), style="dim")
