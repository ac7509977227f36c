"""Figures of simulations: regret against steps, and bandits against the users that they were not made for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.reports.figures import INK, PALETTE, colours, new_figure, style
from rankpolicy.reports.readable_labels import use_readable_log_ticks
from rankpolicy.simulation import RobustnessMatrix, Simulation

LINES = ("-", "--", "-.")  # a new line style each time the colours repeat
THEORY_LINES = (":", (0, (1, 3)))
LIGHTEST_WITH_WHITE = 0.18  # luminance of a cell up to which white is easier to read on it than black
BLACK = "black"  # on cells, which have the same colours on light and dark pages


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


def robustness_figure(matrix: RobustnessMatrix, *, title: str) -> Any:
    """A matplotlib heat map, one row per bandit (best on average first) and one column per kind of user, for ``figures.file``.

    A cell is the regret in percent of the regret of random lists. Colours follow its square root, so that good bandits are
    distinguishable. A frame marks the users that a bandit is made for.
    """
    from matplotlib.patches import Rectangle

    shares, is_made_for = matrix.shares(), matrix.is_made_for()
    order = np.argsort(shares.mean(1), kind="stable")
    with style():
        figure = new_figure(1.9 + 0.92 * len(matrix.users), 1.5 + 0.3 * len(order))
        axes = figure.add_subplot()
        image = axes.imshow(np.sqrt(shares[order].clip(0, 1)), cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for row, bandit in enumerate(order):
            for column in range(len(matrix.users)):
                share = shares[bandit, column]
                colour = (
                    "white" if _luminance(image.to_rgba(np.sqrt(share.clip(0, 1)))) < LIGHTEST_WITH_WHITE else BLACK
                )
                text = f"{100 * share:.1f}" if share < 0.0995 else f"{100 * share:.0f}"
                axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=8.5)
                if is_made_for[bandit, column]:
                    frame = Rectangle(
                        (column - 0.47, row - 0.44), 0.94, 0.88, fill=False, edgecolor=BLACK, linewidth=1.2
                    )
                    axes.add_patch(frame)
        axes.set_yticks(range(len(order)), [matrix.bandits[bandit] for bandit in order])
        axes.set_xticks(range(len(matrix.users)), [user.replace(" out ", " out\n") for user in matrix.users])
        axes.tick_params(length=0, labeltop=True, labelbottom=False)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=axes, fraction=0.03, pad=0.015)
        percents = (0, 1, 5, 10, 25, 50, 100)
        bar.set_ticks([np.sqrt(percent / 100) for percent in percents], labels=[f"{percent} %" for percent in percents])
        bar.outline.set_visible(False)
        axes.set_title(title, loc="left")
        axes.set_xlabel(
            f"regret after {matrix.num_steps:,} lists in percent of that of random lists\nframed: users the bandit is made for",
            labelpad=8,
        )
        return figure


def _luminance(colour: tuple[float, ...]) -> float:
    """Relative luminance of a colour (red, green, blue, opacity), as the contrast of text is measured (WCAG 2)."""
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in colour[:3]
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
