"""Report on position bias: propensities by rank with their intervals, one line per method, and the click-through curve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankpolicy.clicks.position_bias.bias import PositionBias
from rankpolicy.reports import figures
from rankpolicy.reports.html import report
from rankpolicy.reports.readable_labels import use_readable_log_ticks
from rankpolicy.reports.run_record import RunRecord

SPREAD = 0.3  # in ranks: width over which the intervals of several methods are drawn side by side


def position_bias_figure(biases: Mapping[str, PositionBias]) -> Any:
    """A matplotlib figure of position bias by rank, on a logarithmic scale, for ``figures.svg`` and ``figures.file``."""
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
    """The HTML page on the position bias of a click log."""
    return report(
        "position_bias",
        title=title,
        lead=lead,
        run=run,
        biases=biases,
        first=next(iter(biases.values())),
        unit=unit,
        curves=figures.svg(position_bias_figure(biases), f"position bias by rank: {', '.join(biases)}"),
    )
