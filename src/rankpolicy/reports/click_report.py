"""Report on click models: how well each predicts held-out clicks, rank by rank, and its effect of position."""

from __future__ import annotations

import math
from typing import Any

from rankpolicy.clicks import ClickComparison
from rankpolicy.reports import figures
from rankpolicy.reports.figures import PALETTE
from rankpolicy.reports.how_made import how_made
from rankpolicy.reports.html import Cell, Section, figure, html_page, table
from rankpolicy.reports.run_record import RunRecord


def click_figure(comparison: ClickComparison) -> Any:
    """A matplotlib figure of perplexity by rank and position effect, one line per model, for ``figures.svg`` and ``figures.file``.

    Parameters
    ----------
    comparison
        The click models and their perplexities.
    """
    with figures.style():
        drawn = figures.new_figure(10.5, 4.4)
        left, right = drawn.subplots(1, 2)
        styles = zip(figures.colours(), figures.MARKERS * 20, comparison.models.items(), strict=False)
        for place, (colour, marker, (name, measured)) in enumerate(styles):
            ranks = range(1, len(measured.examination) + 1)
            # Colours repeat after six: from then on lines are dashed.
            line = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.5}
            line["linestyle"] = "-" if place < len(PALETTE) else "--"
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
    """The HTML page that compares click models.

    Parameters
    ----------
    comparison
        The click models and how well each predicts held-out clicks.
    run
        Command, seed, data and versions, for the last section.
    title
        Title of the page.
    lead
        First paragraph, below the title.
    """
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
        "the mean over sessions. Perplexity is 1 for a perfect prediction and 2 for a coin flip: the mean over ranks, then each rank."
    )
    drawn = figures.svg(click_figure(comparison), "perplexity by rank and position effect of each click model")
    sections = [
        Section(title="Held-out clicks", parts=(table(header, rows, caption=caption),)),
        Section(
            title="By rank",
            parts=(
                figure(
                    drawn,
                    "Left: perplexity of clicks at each rank, without knowing the clicks above. Right: probability that the item at a rank "
                    "is examined, mean over the held-out lists, relative to the first rank.",
                ),
            ),
        ),
        how_made(run),
    ]
    return html_page(title, lead, sections)


def log_likelihood_text(comparison: ClickComparison, name: str) -> str:
    """Mean log-likelihood over sessions, or the number of sessions to which the model gives probability 0.

    Parameters
    ----------
    comparison
        The click models and how well each predicts held-out clicks.
    name
        Name of the model.
    """
    measured = comparison.models[name]
    if measured.num_impossible:
        return f"-∞ ({measured.num_impossible} impossible)"
    return f"{measured.log_likelihood / comparison.num_test_sessions:.4f}"


def number(value: float, digits: int = 4) -> str:
    """A number in fixed notation; "-" for NaN, "∞" for infinity.

    Parameters
    ----------
    value
        The number.
    digits
        Digits after the point. The default is 4.
    """
    if math.isnan(value):
        return "-"
    return f"{value:.{digits}f}" if math.isfinite(value) else "∞"
