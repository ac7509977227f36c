"""Regret against steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.reports.figures import INK, PALETTE, colours, new_figure, style
from rankpolicy.reports.log_ticks import use_readable_log_ticks
from rankpolicy.simulation import Simulation

LINES = ("-", "--", "-.")  # a new line style each time the colours repeat
THEORY_LINES = (":", (0, (1, 3)))


def regret_figure(
    simulation: Simulation,
    *,
    title: str,
    log_axis: bool = False,
    theory: Mapping[str, NDArray[np.float64]] | None = None,
) -> Any:
    """A matplotlib figure of regret, one line per bandit with a band of one standard error, for ``figures.file``.

    The legend lists bandits by final regret, highest first, in the order of the lines. Theoretical curves far above all bandits are cut off
    at the top of the axis.
    """
    means = {name: simulation.mean(name) for name in simulation.regrets}
    with style():
        figure = new_figure(8.6, 5.0)
        axes = figure.add_subplot()
        by_regret = sorted(means, key=lambda name: -means[name][-1])
        look = {
            name: (colour, LINES[number // len(PALETTE) % len(LINES)])
            for number, (name, colour) in enumerate(zip(means, colours(), strict=False))
        }
        for name in by_regret:
            mean, error = means[name], simulation.standard_error(name)
            colour, line = look[name]
            axes.plot(
                simulation.steps, mean, color=colour, linestyle=line, linewidth=1.7, label=f"{name}  {mean[-1]:.3g}"
            )
            axes.fill_between(simulation.steps, mean - error, mean + error, color=colour, alpha=0.22, linewidth=0)
        # Where no bandit has regret, the axis still needs a positive length.
        highest = 1.08 * max(mean[-1] for mean in means.values()) or 1.0
        for dots, (name, values) in zip(THEORY_LINES, (theory or {}).items(), strict=False):
            beyond = values[-1] > highest
            text = f"{name}  {values[-1]:.3g}{' (beyond the top)' if beyond else ''}"
            axes.plot(simulation.steps, values, color=INK, linestyle=dots, linewidth=1.4, label=text)
        axes.set_ylim(0, highest)
        if log_axis:
            axes.set_xscale("log")
            use_readable_log_ticks(axes.xaxis)
        else:
            axes.set_xlim(0, simulation.steps[-1])
            axes.locator_params(axis="x", nbins=5)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlabel("step")
        runs = len(next(iter(simulation.regrets.values())))
        axes.set_ylabel(f"regret, mean of {runs} runs ± standard error" if runs > 1 else "regret of one run")
        axes.set_title(title, fontsize=11, loc="left")
        axes.legend(
            loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9, title="regret at the end", title_fontsize=9
        )
        return figure
