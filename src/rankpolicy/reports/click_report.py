"""Report on click models: how well each predicts held-out clicks, rank by rank, and its effect of position."""

from __future__ import annotations

import math
from typing import Any

from rankpolicy.clicks import ClickComparison
from rankpolicy.reports import figures
from rankpolicy.reports.figures import PALETTE
from rankpolicy.reports.html import report
from rankpolicy.reports.run_record import RunRecord


def click_figure(comparison: ClickComparison) -> Any:
    """A matplotlib figure of perplexity by rank and position effect, one line per model, for ``figures.svg`` and ``figures.file``."""
    with figures.style():
        drawn = figures.new_figure(10.5, 4.4)
        perplexity, examination = drawn.subplots(1, 2)
        styles = zip(figures.colours(), figures.MARKERS * 20, comparison.models.items(), strict=False)
        for number, (colour, marker, (name, measured)) in enumerate(styles):
            ranks = range(1, len(measured.examination) + 1)
            # Colours repeat after six: from then on lines are dashed.
            line = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.5}
            line["linestyle"] = "-" if number < len(PALETTE) else "--"
            perplexity.plot(ranks, measured.perplexity.by_rank, **line, label=name)
            examination.plot(ranks, measured.examination / measured.examination[0], **line)
        perplexity.set_ylabel("perplexity of held-out clicks   (← better)")
        examination.set_ylabel("P(examined), 1 at the first rank")
        examination.set_ylim(bottom=0)
        for axes in (perplexity, examination):
            axes.set_xlabel("rank")
            axes.xaxis.get_major_locator().set_params(integer=True)
        drawn.legend(*perplexity.get_legend_handles_labels(), loc="outside upper left", ncols=10, fontsize=10)
        return drawn


def click_page(comparison: ClickComparison, run: RunRecord, *, title: str, lead: str) -> str:
    """The HTML page that compares click models."""
    best = min(comparison.models, key=lambda name: comparison.models[name].perplexity.overall)
    return report(
        "clicks",
        title=title,
        lead=lead,
        run=run,
        comparison=comparison,
        best=best,
        ranks=[f"@{rank}" for rank in range(1, len(comparison.models[best].perplexity.by_rank) + 1)],
        curves=figures.svg(click_figure(comparison), "perplexity by rank and position effect of each click model"),
        log_likelihood_text=log_likelihood_text,
        number=number,
    )


def log_likelihood_text(comparison: ClickComparison, name: str) -> str:
    """Mean log-likelihood over sessions, or the number of sessions to which the model gives probability 0."""
    measured = comparison.models[name]
    if measured.num_impossible:
        return f"-∞ ({measured.num_impossible} impossible)"
    return f"{measured.log_likelihood / comparison.num_test_sessions:.4f}"


def number(value: float, digits: int = 4) -> str:
    """A number in fixed notation; "-" for NaN, "∞" for infinity."""
    if math.isnan(value):
        return "-"
    return f"{value:.{digits}f}" if math.isfinite(value) else "∞"
