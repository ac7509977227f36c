"""Reports on explanations: one HTML page with the figure, the table and how to repeat it."""

from __future__ import annotations

from rankpolicy.explanations.explanation import Explanation
from rankpolicy.explanations.importance import FeatureImportance
from rankpolicy.reports import figures
from rankpolicy.reports.how_made import how_made
from rankpolicy.reports.html import Cell, Section, figure, html_page, paragraph, table
from rankpolicy.reports.run_record import RunRecord


def explanation_page(found: Explanation | FeatureImportance, run: RunRecord) -> str:
    """The HTML page of an explanation or of importances.

    Parameters
    ----------
    found
        What was found.
    run
        Command, seed, data and versions, for the last section.
    """
    if isinstance(found, FeatureImportance):
        title, lead, section = "Importance of features", f"{found.ranker}: {found.meaning}.", _importances(found)
    else:
        title, lead, section = "Why this item", _lead(found), _contributions(found)
    return html_page(title, lead, [section, how_made(run)])


def _lead(found: Explanation) -> str:
    what = "score" if found.of == "score" else "expected rank"
    against = "the mean of the background" if found.over is None else found.over
    return (
        f"{found.ranker}, query {found.query}: {found.item} has the {what} {found.value:.4f}, {against} has {found.base:.4f}. "
        f"What each feature adds to that difference, {found.value - found.base:+.4f}, as Shapley values, {found.method}."
    )


def _importances(found: FeatureImportance) -> Section:
    rows: list[list[str | Cell]] = [
        [row["feature"], Cell(f"{row['importance']:.4f}"), Cell(f"{row['lower']:.4f} to {row['upper']:.4f}")]
        for row in found.to_frame().iter_rows(named=True)
    ]
    more = (
        "Of features that carry the same information, each may look unimportant while the other remains."
        if found.method == "permutation"
        else "Gain is measured on the training data; the intervals show how far a share rests on few trees."
    )
    return Section(
        title="Features",
        parts=(
            figure(figures.svg(found.plot(), "importance of features"), "Bars are importances, lines their intervals."),
            paragraph(more, soft=True),
            table(["feature", "importance", f"{found.level:.0%} interval"], rows),
        ),
    )


def _contributions(found: Explanation) -> Section:
    is_exact = not found.standard_errors.any()
    rows: list[list[str | Cell]] = [
        [
            row["feature"],
            row["item"],
            row["reference"],
            Cell(f"{row['value']:+.4f}" + ("" if is_exact else f" ± {row['standard_error']:.4f}")),
        ]
        for row in found.to_frame().iter_rows(named=True)
    ]
    direction = (
        "A positive value speaks for the item." if found.of == "score" else "A negative value moves the item up."
    )
    errors = "" if is_exact else " ± is the standard error of the estimate."
    return Section(
        title="What each feature adds",
        parts=(
            figure(
                figures.svg(found.plot(), found.title),
                f"Steps from {found.reference_name} (top) to {found.item} (bottom): blue speaks for the item, orange against it.",
            ),
            paragraph(direction + errors, soft=True),
            table(["feature", found.item, found.reference_name, "adds"], rows),
        ),
    )
