"""The report of click models: how well each forecasts held-out clicks, rank by rank, and how it sees positions."""

from __future__ import annotations

import math
from typing import Any

from rankpolicy.clicks import ClickComparison
from rankpolicy.reports import figures
from rankpolicy.reports.html import Cell, Section, command, figure, html_page, paragraph, table
from rankpolicy.reports.run_record import RunRecord


def click_figure(comparison: ClickComparison) -> Any:
    """Perplexity by rank beside the position effect, a line a model; for ``figures.svg`` and ``figures.file``."""
    with figures.style():
        drawn = figures.new_figure(10.5, 4.4)
        left, right = drawn.subplots(1, 2)
        styles = zip(figures.colours(), figures.MARKERS * 20, comparison.models.items(), strict=False)
        for place, (colour, marker, (name, measured)) in enumerate(styles):
            ranks = range(1, len(measured.examination) + 1)
            # Colours repeat after six: a dashed line tells the second round from the first.
            line = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.5}
            line["linestyle"] = "-" if place < len(figures.PALETTE) else "--"
            left.plot(ranks, measured.perplexity.by_rank, **line, label=name)
            right.plot(ranks, measured.examination / measured.examination[0], **line)
        left.set_ylabel("perplexity of held-out clicks   (← better)")
        right.set_ylabel("P(examined), 1 at the first rank")
        right.set_ylim(bottom=0)
        for axes in (left, right):
            axes.set_xlabel("rank")
            axes.xaxis.get_major_locator().set_params(integer=True)
        drawn.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncols=10, fontsize=10)
        return drawn


def click_page(comparison: ClickComparison, run: RunRecord, *, title: str, lead: str) -> str:
    """The whole page."""
    best = min(comparison.models, key=lambda name: comparison.models[name].perplexity.overall)
    rows: list[list[str | Cell]] = [
        [
            name,
            Cell(log_likelihood_text(comparison, name)),
            Cell(f"{measured.perplexity.overall:.4f}", is_best=name == best),
            Cell(number(measured.conditional_perplexity.overall)),
            *(Cell(number(value, 3)) for value in measured.perplexity.by_rank),
        ]
        for name, measured in comparison.models.items()
    ]
    num_ranks = len(comparison.models[best].perplexity.by_rank)
    header = [
        "model",
        "log-likelihood",
        "perplexity",
        "given clicks above",
        *(f"@{k}" for k in range(1, num_ranks + 1)),
    ]
    caption = (
        f"{comparison.num_test_sessions} held-out sessions, models fitted on {comparison.num_train_sessions}. Log-likelihood is natural, "
        "the mean over sessions. Perplexity is 1 for a perfect forecast and 2 for a coin; the mean over ranks, then rank by rank."
    )
    drawn = figures.svg(click_figure(comparison), "perplexity by rank and position effect of each click model")
    sections = [
        Section(title="Held-out clicks", parts=(table(header, rows, caption=caption),)),
        Section(
            title="By rank",
            parts=(
                figure(
                    drawn,
                    "Left: perplexity of the click marks at each rank, clicks above not known. Right: how likely an item at a rank is "
                    "looked at, the mean over the held-out lists, relative to the first rank.",
                ),
            ),
        ),
        Section(
            title="How this was made",
            parts=(command(run.command), paragraph(f"{run.started}, {run.duration_seconds:.1f} s.", soft=True)),
        ),
    ]
    return html_page(title, lead, sections)


def log_likelihood_text(comparison: ClickComparison, name: str) -> str:
    """The mean over sessions, or how many sessions the model rules out."""
    measured = comparison.models[name]
    if measured.num_impossible:
        return f"-∞ ({measured.num_impossible} impossible)"
    return f"{measured.log_likelihood / comparison.num_test_sessions:.4f}"


def number(value: float, digits: int = 4) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.{digits}f}" if math.isfinite(value) else "∞"
