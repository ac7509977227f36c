"""Report on a search for settings: what was found, the trials, and which settings matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankpolicy.evaluation import MetricTable, bootstrap_interval
from rankpolicy.experiments.tuning.tuned import Tuned
from rankpolicy.reports.html import report
from rankpolicy.reports.run_record import RunRecord
from rankpolicy.reports.tuning_figures import importance_figure, progress_figure, settings_figure


def tuning_page(
    tuned: Tuned, run: RunRecord, *, title: str, lead: str, test: Mapping[str, MetricTable] | None = None
) -> str:
    """The HTML page of a search."""
    differences = []
    if test is not None:
        tuned_values, values = test["tuned"], test["as given"]
        differences = [
            (metric, bootstrap_interval(tuned_values[metric] - values[metric], random_state=run.seed))
            for metric in tuned_values.names
        ]
    return report(
        "tuning",
        title=title,
        lead=lead,
        run=run,
        tuned=tuned,
        test=test,
        differences=differences,
        progress=progress_figure(tuned),
        importance=importance_figure(tuned.importance) if tuned.importance else "",
        settings=settings_figure(tuned),
        setting_text=_text,
    )


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
