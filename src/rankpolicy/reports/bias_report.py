"""Report on position bias: propensities by rank with their intervals, one line per method, and the click-through curve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankpolicy.clicks.position_bias.bias import PositionBias
from rankpolicy.reports import figures
from rankpolicy.reports.how_made import how_made
from rankpolicy.reports.html import Cell, Section, figure, html_page, paragraph, table
from rankpolicy.reports.log_ticks import use_readable_log_ticks
from rankpolicy.reports.run_record import RunRecord

SPREAD = 0.3  # in ranks: width over which the intervals of several methods are drawn side by side


def position_bias_figure(biases: Mapping[str, PositionBias]) -> Any:
    """A matplotlib figure of position bias by rank, on a logarithmic scale, for ``figures.svg`` and ``figures.file``.

    Parameters
    ----------
    biases
        Estimates of position bias by the name of their method; at least one.
    """
    with figures.style():
        drawn = figures.new_figure(7.4, 4.8)
        axes = drawn.add_subplot()
        first = next(iter(biases.values()))
        ranks = np.arange(1, len(first.click_through) + 1)
        with np.errstate(invalid="ignore"):
            relative = first.click_through / first.click_through[0]
        axes.plot(ranks, relative, "--", color=figures.INK, linewidth=1.5, label="click-through", alpha=0.75)
        shifts = np.linspace(-SPREAD / 2, SPREAD / 2, len(biases)) if len(biases) > 1 else np.zeros(1)
        styles = zip(figures.colours(), figures.MARKERS * 20, shifts, biases.items(), strict=False)
        for colour, marker, shift, (name, bias) in styles:
            values, (low, high) = bias.propensities, bias.intervals.T
            has_interval = ~np.isnan(low)
            axes.plot(ranks + shift, values, color=colour, marker=marker, markersize=5, linewidth=1.5, label=name)
            axes.vlines(
                (ranks + shift)[has_interval],
                low[has_interval],
                high[has_interval],
                color=colour,
                linewidth=3,
                alpha=0.4,
            )
        axes.set_yscale("log")
        use_readable_log_ticks(axes.yaxis)
        axes.set_xticks(ranks)
        axes.set_xlabel("rank")
        intervals = f", with {first.level:.0%} intervals" if first.num_resamples else ""
        axes.set_ylabel(f"relative to the first rank{intervals}")
        axes.legend(fontsize=10, loc="lower left")  # the curves descend from the upper left, so this corner is free
        return drawn


def position_bias_page(biases: Mapping[str, PositionBias], run: RunRecord, *, title: str, lead: str, unit: str) -> str:
    """The HTML page on the position bias of a click log.

    Parameters
    ----------
    biases
        Estimates of position bias by the name of their method; at least one.
    run
        Command, seed, data and versions, for the last section.
    title
        Title of the page.
    lead
        First paragraph, below the title.
    unit
        What the log counts: "sessions", or "items shown" where it holds counts.
    """
    first = next(iter(biases.values()))
    rows: list[list[str | Cell]] = []
    for rank, click_through in enumerate(first.click_through):
        row: list[str | Cell] = [Cell(str(rank + 1)), Cell(_number(click_through / first.click_through[0]))]
        for found in biases.values():
            low, high = found.intervals[rank]
            interval = "" if math.isnan(low) else f"{low:.3f} to {high:.3f}"
            row.append(Cell(_number(found.propensities[rank]), below=interval))
        rows.append(row)
    intervals = (
        f"; below it the {first.level:.0%} bootstrap interval over {first.resampled}" if first.num_resamples else ""
    )
    caption = (
        f"Probability that users examine a rank, relative to the first{intervals}. {first.num_sessions} {unit}, {first.num_clicks} clicks, "
        f"{first.num_swap_pairs} (query, item) pairs shown at several ranks."
    )
    drawn = figures.svg(position_bias_figure(biases), f"position bias by rank: {', '.join(biases)}")
    bars = ", bars bootstrap intervals" if first.num_resamples else ""
    sections = [
        Section(
            title="Examination by rank",
            parts=(
                figure(
                    drawn,
                    f"On a logarithmic scale; solid lines are estimates of examination{bars}, the dashed line is the click-through rate.",
                ),
                paragraph(
                    "The click-through rate falls with the rank for two reasons: lower ranks are examined less, and they hold less "
                    "relevant items. Position bias is the first reason alone, so its curve usually lies above the dashed line."
                ),
            ),
        ),
        Section(title="Propensities", parts=(table(["rank", "click-through", *biases], rows, caption=caption),)),
        how_made(run),
    ]
    return html_page(title, lead, sections)


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"
