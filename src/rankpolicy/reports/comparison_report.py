"""Report on a comparison of rankers: one page with tables, figures, significance tests and how to repeat it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from rankpolicy.experiments.comparison import Comparison
from rankpolicy.rankers.base import Ranker
from rankpolicy.reports import figures
from rankpolicy.reports.html import Section, report
from rankpolicy.reports.run_record import RunRecord

STARS = "* p < 0.05, ** p < 0.01, *** p < 0.001"
MOST_SCATTERS = 3


def comparison_page(
    comparison: Comparison, run: RunRecord, *, title: str, lead: str, sections: Sequence[Section] = ()
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
    sections
        Sections to add before the last one, which says how the page was made.
    """
    tests = list(dict.fromkeys(paired.test for paired in comparison.significance))
    by_case = {(paired.a, paired.b, paired.metric, paired.test): paired for paired in comparison.significance}
    cases = dict.fromkeys((paired.a, paired.b, paired.metric) for paired in comparison.significance)
    rankers_of = {
        method: [selection.ranker for selection in selections] for method, selections in comparison.selections.items()
    }
    return report(
        "comparison",
        title=title,
        lead=lead,
        run=run,
        comparison=comparison,
        mean_text=mean_text,
        adjustment=adjustment,
        p_text=p_text,
        intervals=figures.metric_intervals(comparison.pooled, random_state=run.seed),
        tests=tests,
        cases=[[by_case[*case, test] for test in tests] for case in cases],
        validation_curves=figures.validation_curves(
            {method: [ranker.evals_result_ for ranker in rankers] for method, rankers in rankers_of.items()},
            {method: [ranker.best_iteration_ for ranker in rankers] for method, rankers in rankers_of.items()},
        ),
        learning=[
            _learning(method, dict(zip(comparison.fold_names, rankers, strict=True)))
            for method, rankers in rankers_of.items()
        ],
        scatters=_scatters(comparison),
        chosen=_chosen(comparison),
        sections=sections,
    )


def adjustment(comparison: Comparison) -> str:
    """A sentence that says over which comparisons p-values are adjusted, and what the stars mean."""
    which = (
        "all comparisons of a test"
        if comparison.baseline is None
        else f"the comparisons of a test with {comparison.baseline}"
    )
    return f"p-values adjusted by Holm's method over {which}; {STARS}"


def stars(p: float) -> str:
    """Marks of significance: * below 0.05, ** below 0.01, *** below 0.001."""
    return "***" if p < 0.001 else "**" if p < 0.01 else "*" if p < 0.05 else ""


def p_text(p: float) -> str:
    """A p-value with its marks of significance.

    >>> p_text(0.00002), p_text(0.02), p_text(0.5)
    ('< 0.0001 ***', '0.0200 *', '0.5000')
    """
    return f"{'< 0.0001' if p < 0.0001 else f'{p:.4f}'} {stars(p)}".strip()


def chosen_settings(comparison: Comparison, method: str) -> list[str]:
    """The settings chosen for a method on validation data, most frequent first, with the number of folds that chose them."""
    if method not in comparison.selections:
        return ["a run of another ranker"]
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
    """Mean of a metric over folds, with the standard deviation between folds where there are several."""
    mean, values = comparison.mean(method, metric), comparison.per_fold(method, metric)
    if math.isnan(mean):
        return "–"
    return f"{mean:.4f} ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else f"{mean:.4f}"


def _learning(method: str, rankers: Mapping[str, Ranker]) -> tuple[str, str, str, list[int]]:
    """Training and validation of a method: its name, the name of a step, the curves, and the best step of each fold."""
    step = "epoch" if "epochs" in next(iter(rankers.values())).setting_names() else "tree"
    best = {fold: ranker.best_iteration_ for fold, ranker in rankers.items()}
    curves = figures.learning_curves({fold: ranker.evals_result_ for fold, ranker in rankers.items()}, best, step=step)
    return method, step, curves, list(best.values())


def _scatters(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Two methods and their values query by query: of the best or the baseline with some others."""
    metric, pooled = comparison.metrics[0], comparison.pooled
    best = comparison.baseline or comparison.best_method(metric)
    methods = [method for method in comparison.methods if method != best][:MOST_SCATTERS]
    if comparison.baseline is not None:
        pairs = [(best, other) for other in methods]
    elif len(comparison.methods) > 2:
        pairs = [(other, best) for other in methods]
    else:
        pairs = [(b, a) for a, b in combinations(comparison.methods, 2)]
    return [
        (a, b, figures.query_scatter({a: pooled[a][metric], b: pooled[b][metric]}, metric=metric)) for a, b in pairs
    ]


def _chosen(comparison: Comparison) -> list[tuple[str, str, int | None]]:
    """Rows of the table of settings; the method and the number of candidates stand in its first row."""
    rows: list[tuple[str, str, int | None]] = []
    for method, selections in comparison.selections.items():
        first_settings, *further_settings = chosen_settings(comparison, method)
        rows.append((method, first_settings, max(len(selection.tried) for selection in selections)))
        rows += [("", settings, None) for settings in further_settings]
    return rows
