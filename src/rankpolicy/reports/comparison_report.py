"""Report on a comparison of rankers: one page with tables, figures, significance tests and how to repeat it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rankpolicy.experiments.comparison import Comparison
from rankpolicy.reports import figures
from rankpolicy.reports.html import Cell, Section, command, figure, heading, html_page, paragraph, table
from rankpolicy.reports.run_record import RunRecord

STARS = "p-values adjusted by Holm's method over all comparisons of a test; * p < 0.05, ** p < 0.01, *** p < 0.001"
MOST_SCATTERS = 3


def comparison_page(
    comparison: Comparison, run: RunRecord, *, title: str, lead: str, more: Sequence[Section] = ()
) -> str:
    """The HTML page that compares rankers.

    Parameters
    ----------
    comparison
        The rankers, their metrics on test data and the settings that were chosen.
    run
        Command, seed, data and versions, for the last section.
    title
        Title of the page.
    lead
        First paragraph, below the title.
    more
        Sections to add before the last one, which says how the page was made.
    """
    return html_page(
        title,
        lead,
        [
            Section(title="Metrics", parts=_metrics(comparison, run.seed)),
            *([Section(title="Significance", parts=_significance(comparison))] if comparison.significance else []),
            Section(title="Learning curves", parts=_learning(comparison)),
            *([Section(title="Query by query", parts=_scatters(comparison))] if len(comparison.methods) > 1 else []),
            Section(title="Settings", parts=_settings(comparison)),
            *more,
            Section(title="How this page was made", parts=how_made(run)),
        ],
    )


def stars(p: float) -> str:
    """Marks of significance: * below 0.05, ** below 0.01, *** below 0.001.

    Parameters
    ----------
    p
        A p-value.
    """
    return "***" if p < 0.001 else "**" if p < 0.01 else "*" if p < 0.05 else ""


def chosen_settings(comparison: Comparison, method: str) -> list[str]:
    """The settings chosen for a method on validation data, most frequent first, with the number of folds that chose them.

    Parameters
    ----------
    comparison
        The comparison.
    method
        Name of the method.
    """
    texts = [
        ", ".join(f"{name}={value}" for name, value in selection.settings.items() if name != "random_state")
        for selection in comparison.selections[method]
    ]
    several = len(texts) > 1
    return [
        (text or "defaults") + (f" ({count} of {len(texts)} folds)" if several else "")
        for text, count in Counter(texts).most_common()
    ]


def mean_text(comparison: Comparison, method: str, metric: str) -> str:
    """Mean of a metric over folds, with the standard deviation between folds where there are several.

    Parameters
    ----------
    comparison
        The comparison.
    method
        Name of the method.
    metric
        Name of the metric.
    """
    mean, values = comparison.mean(method, metric), comparison.per_fold(method, metric)
    if math.isnan(mean):
        return "–"
    return f"{mean:.4f} ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else f"{mean:.4f}"


def _metrics(comparison: Comparison, seed: int) -> tuple[str, ...]:
    pooled = comparison.pooled
    best = {metric: comparison.best_method(metric) for metric in comparison.metrics}
    rows: list[list[str | Cell]] = []
    for method in comparison.methods:
        row: list[str | Cell] = [method]
        for metric in comparison.metrics:
            low, high = pooled[method].confidence_interval(metric, random_state=seed)
            text = mean_text(comparison, method, metric)
            row.append(Cell(text, is_best=method == best[metric], below=f"{low:.4f} to {high:.4f}"))
        rows.append(row)
    num_folds, num_queries = len(comparison.fold_names), len(pooled[comparison.methods[0]])
    over = (
        f"Mean over {num_folds} folds ± standard deviation between them" if num_folds > 1 else "Mean over test queries"
    )
    caption = f"{over}; below it the 95% bootstrap interval over {num_queries} test queries; {comparison.conventions}."
    return (
        table(["method", *comparison.metrics], rows, caption=caption),
        figure(
            figures.metric_intervals(pooled, random_state=seed),
            "Dots are means over test queries, lines 95% intervals.",
        ),
    )


def _significance(comparison: Comparison) -> tuple[str, ...]:
    tests = list(dict.fromkeys(paired.test for paired in comparison.significance))
    by_case = {(paired.a, paired.b, paired.metric, paired.test): paired for paired in comparison.significance}
    rows: list[list[str | Cell]] = []
    for a, b, metric in dict.fromkeys((paired.a, paired.b, paired.metric) for paired in comparison.significance):
        cases = [by_case[a, b, metric, test] for test in tests]
        rows.append(
            [
                f"{a} − {b}",
                metric,
                Cell(f"{cases[0].difference:+.4f}"),
                *(Cell(f"{case.p_holm:.4f} {stars(case.p_holm)}".strip()) for case in cases),
            ]
        )
    return (
        table(
            ["methods", "metric", "difference", *tests],
            rows,
            caption=f"Mean difference per test query; {STARS}.",
        ),
    )


def _learning(comparison: Comparison) -> tuple[str, ...]:
    parts = []
    for method, selections in comparison.selections.items():
        rankers = dict(zip(comparison.fold_names, (selection.ranker for selection in selections), strict=True))
        step = "epoch" if "epochs" in selections[0].ranker.setting_names() else "tree"
        svg = figures.learning_curves(
            {fold: ranker.evals_result_ for fold, ranker in rankers.items()},
            {fold: ranker.best_iteration_ for fold, ranker in rankers.items()},
            step=step,
        )
        kept = ", ".join(str(ranker.best_iteration_) for ranker in rankers.values())
        parts += [
            heading(method),
            figure(svg, f"The dot marks the {step} with the best validation score; its model is kept: {kept}."),
        ]
    return tuple(parts)


def _scatters(comparison: Comparison) -> tuple[str, ...]:
    metric, pooled = comparison.metrics[0], comparison.pooled
    best = comparison.best_method(metric)
    pairs = (
        [(other, best) for other in comparison.methods if other != best][:MOST_SCATTERS]
        if len(comparison.methods) > 2
        else [(b, a) for a, b in combinations(comparison.methods, 2)]
    )
    caption = "Each point is a test query; above the line {b} is better, below it {a}."
    return tuple(
        figure(
            figures.query_scatter({a: pooled[a][metric], b: pooled[b][metric]}, metric=metric), caption.format(a=a, b=b)
        )
        for a, b in pairs
    )


def _settings(comparison: Comparison) -> tuple[str, ...]:
    rows: list[list[str | Cell]] = []
    for method, selections in comparison.selections.items():
        tried = Cell(str(max(len(selection.tried) for selection in selections)))
        rows += [
            [method if line == 0 else "", text, tried if line == 0 else ""]
            for line, text in enumerate(chosen_settings(comparison, method))
        ]
    return (
        table(
            ["method", "chosen on validation data", "candidates"],
            rows,
            caption="Settings that are not listed have their defaults.",
        ),
    )


def how_made(run: RunRecord) -> tuple[str, ...]:
    """HTML fragments with the command, seed, data and versions of a run.

    Parameters
    ----------
    run
        The record of the run.
    """
    data: list[list[str | Cell]] = [
        [
            role,
            str(facts.get("path", "")),
            Cell(str(facts.get("queries", ""))),
            Cell(str(facts.get("items", ""))),
            facts["sha256"][:16],
        ]
        for role, facts in run.data.items()
    ]
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return (
        command(run.command),
        paragraph(f"Seed {run.seed}; started {run.started}; took {run.duration_seconds:.1f} s."),
        table(["data", "from", "queries", "items", "sha256"], data),
        paragraph(versions, soft=True),
    )
