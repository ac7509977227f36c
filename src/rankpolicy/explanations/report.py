"""Reports on explanations: one HTML page with the figure, the table and how to repeat it."""

from __future__ import annotations

from rankpolicy.explanations.explanation import Explanation
from rankpolicy.explanations.importance import FeatureImportance
from rankpolicy.reports import figures
from rankpolicy.reports.html import report
from rankpolicy.reports.run_record import RunRecord


def explanation_page(explained: Explanation | FeatureImportance, run: RunRecord) -> str:
    """The HTML page of an explanation or of importances."""
    rows = explained.to_frame().to_dicts()
    if isinstance(explained, FeatureImportance):
        return report(
            "importance",
            title="Importance of features",
            lead=f"{explained.ranker}: {explained.meaning}.",
            run=run,
            importance=explained,
            rows=rows,
            bars=figures.svg(explained.plot(), "importance of features"),
        )
    return report(
        "explanation",
        title="Why this item",
        lead=_lead(explained),
        run=run,
        explanation=explained,
        rows=rows,
        waterfall=figures.svg(explained.plot(), explained.title),
    )


def _lead(explanation: Explanation) -> str:
    value_name = "score" if explanation.of == "score" else "expected rank"
    reference = "the mean of the background" if explanation.over is None else explanation.over
    return (
        f"{explanation.ranker}, query {explanation.query}: {explanation.item} has the {value_name} {explanation.value:.4f}, "
        f"{reference} has {explanation.base:.4f}. What each feature adds to that difference, "
        f"{explanation.value - explanation.base:+.4f}, as Shapley values, {explanation.method}."
    )
