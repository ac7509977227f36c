"""Figures as SVG text for use inside an HTML page: transparent, in the page's text colour, without external files."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.evaluation import MetricTable
from rankpolicy.optional import require
from rankpolicy.reports.readable_labels import label_points, use_readable_log_ticks

# Okabe & Ito 2008: distinguishable with colour vision deficiencies. Pages replace them by their own c0 to c5.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK = "#010203"  # placeholder, replaced by the page's text colour
LINES = ("-",) * len(PALETTE) + ("--",) * len(PALETTE)  # dashed when colours repeat
MARKERS = ("o", "s", "^", "D", "v", "P")
MOST_DRAWN_POINTS = 4000
MOST_UNEQUAL_STEPS = 3  # beyond this ratio of lengths, learning curves have a logarithmic axis
SMALLEST_SCALE = 0.65  # to which a page may shrink a figure; a narrower page scrolls it
STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#808080",
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "rankpolicy",
}


def learning_curves(
    histories: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]],
    best_steps: Mapping[str, int],
    *,
    step: str,
) -> str:
    """Training and validation values of a method by epoch or tree as SVG, one line per fold, with the best step marked."""
    # The reward may be chosen fold by fold, and names its curve.
    named = [(split, name) for history in histories.values() for split in history for name in history[split]]
    panels = [panel for panel in dict.fromkeys(sorted(named)) if panel[0] in ("training", "valid_0")]
    with style():
        figure = new_figure(4.6 * len(panels) if len(panels) > 1 else 7.0, 3.4)
        for index, (split, name) in enumerate(panels, 1):
            axes = figure.add_subplot(1, len(panels), index)
            for colour, (fold, history) in zip(colours(), histories.items(), strict=False):
                values, best = history.get(split, {}).get(name, ()), best_steps[fold]
                if not len(values):
                    continue
                axes.plot(range(1, len(values) + 1), values, color=colour, linewidth=1.6, label=fold)
                if split == "valid_0" and best <= len(values):
                    axes.plot([best], [values[best - 1]], "o", color=colour, markersize=7, label=None)
            axes.set(xlabel=step, ylabel=f"training {name}" if split == "training" else f"validation {name}")
            if len(histories) > 1 and index == len(panels):
                axes.legend(fontsize=9, loc="lower right")
        return svg(figure, f"learning curves by {step}")


def validation_curves(
    histories: Mapping[str, Sequence[Mapping[str, Mapping[str, Sequence[float]]]]],
    best_steps: Mapping[str, Sequence[int]],
) -> str | None:
    """Validation scores of all methods by epoch or tree on one axis as SVG; None where no method has any.

    Each method has one colour: a pale line per fold and a strong one for the mean of the folds, up to the last step that all folds reached.
    Steps have a logarithmic axis where some methods take many more of them than others. Each metric has its own panel.
    """
    names = list(dict.fromkeys(name for folds in histories.values() for name in folds[0].get("valid_0", {})))
    if not names:
        return None
    looks = dict(zip(histories, zip(colours(), LINES * 20, strict=False), strict=False))
    with style():
        figure = new_figure(7.6 if len(names) == 1 else 4.6 * len(names), 3.9)
        for index, name in enumerate(names, 1):
            axes = figure.add_subplot(1, len(names), index)
            lengths = []
            for method, folds in histories.items():
                curves = [fold["valid_0"][name] for fold in folds if name in fold.get("valid_0", {})]
                if not curves:
                    continue
                colour, line = looks[method]
                shortest = min(map(len, curves))
                lengths.append(max(map(len, curves)))
                mean = np.mean([curve[:shortest] for curve in curves], axis=0)
                for curve, best in zip(curves, best_steps[method], strict=True):
                    if len(curves) > 1:
                        axes.plot(range(1, len(curve) + 1), curve, color=colour, linewidth=0.9, alpha=0.35)
                    if 1 <= best <= len(curve):
                        size = 7 if len(curves) == 1 else 4
                        axes.plot([best], [curve[best - 1]], "o", color=colour, markersize=size)
                axes.plot(range(1, shortest + 1), mean, color=colour, linestyle=line, linewidth=1.8, label=method)
            if max(lengths) > MOST_UNEQUAL_STEPS * min(lengths):
                axes.set_xscale("log")
                use_readable_log_ticks(axes.xaxis)
            axes.set(xlabel="epoch or tree", ylabel=f"validation {name}")
        handles = {
            label: handle
            for axes in figure.axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=4, fontsize=10)
        return svg(figure, f"validation scores of {', '.join(histories)} by epoch or tree")


def metric_intervals(tables: Mapping[str, MetricTable], *, random_state: int = 0) -> str:
    """Mean of each metric with its 95% bootstrap interval over queries as SVG, one panel per metric and one row per method."""
    names = next(iter(tables.values())).names
    with style():
        columns = min(2, len(names))
        rows = math.ceil(len(names) / columns)
        figure = new_figure(7.0 if columns == 1 else 9.2, (1.1 + 0.42 * len(tables)) * rows)
        figure.get_layout_engine().set(wspace=0.08)
        for index, name in enumerate(names, 1):
            axes = figure.add_subplot(rows, columns, index)
            for row, (colour, table) in enumerate(zip(colours(), tables.values(), strict=False)):
                mean = table.means[name]
                low, high = table.confidence_interval(name, random_state=random_state)
                axes.plot([low, high], [row, row], color=colour, linewidth=2.5, solid_capstyle="round")
                axes.plot([mean], [row], "o", color=colour, markersize=8)
            axes.set_yticks(range(len(tables)), list(tables) if index % columns == 1 % columns else [""] * len(tables))
            axes.set_ylim(len(tables) - 0.5, -0.5)
            axes.margins(x=0.08)
            axes.locator_params(axis="x", nbins=5)
            axes.grid(axis="y", visible=False)
            axes.set_xlabel(f"{name}, mean over queries")
        return svg(figure, f"{', '.join(names)} of {', '.join(tables)} with 95% intervals")


def query_scatter(values: Mapping[str, NDArray[np.float64]], *, metric: str) -> str:
    """Scatter plot of two methods query by query as SVG; above the diagonal the second is better. The title counts wins and ties."""
    (a, of_a), (b, of_b) = values.items()
    counted = ~(np.isnan(of_a) | np.isnan(of_b))
    of_a, of_b = of_a[counted], of_b[counted]
    ties = int(np.isclose(of_a, of_b, rtol=0, atol=1e-12).sum())
    wins_of_b = int((of_b > of_a + 1e-12).sum())
    wins_of_a = len(of_a) - ties - wins_of_b
    with style():
        figure = new_figure(5.4, 5.2)
        axes = figure.add_subplot()
        lowest = min(of_a.min(initial=0.0), of_b.min(initial=0.0))
        highest = max(of_a.max(initial=lowest + 1e-9), of_b.max(initial=lowest + 1e-9))
        axes.plot([lowest, highest], [lowest, highest], color=INK, linewidth=1, alpha=0.6)
        opacity = 0.7 if len(of_a) < 1000 else 0.35
        many = len(of_a) > MOST_DRAWN_POINTS
        axes.scatter(of_a, of_b, s=18, color=PALETTE[0], alpha=opacity, linewidths=0, rasterized=many)
        axes.set_aspect("equal")
        axes.set(xlabel=f"{metric} of {a}", ylabel=f"{metric} of {b}")
        axes.set_title(f"{b} better {wins_of_b} · equal {ties} · {a} better {wins_of_a}", fontsize=11)
        return svg(figure, f"{metric} of {a} and {b} query by query")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The points of one method in a trade-off figure, ordered by the setting that was varied."""

    x: Sequence[float]
    y: Sequence[float]
    spread_of_x: Sequence[float] | None
    spread_of_y: Sequence[float] | None
    labels: Sequence[str]


def tradeoff_curves(
    curves: Mapping[str, Curve], front: Sequence[tuple[float, float]], *, x_name: str, y_name: str, label_name: str
) -> Any:
    """A matplotlib figure of a trade-off, for ``svg`` or ``file``: one line per method with its spread, and the Pareto front ringed."""
    with style():
        figure = new_figure(8.6, 5.4)
        axes = figure.add_subplot()
        if len(front) > 1:
            axes.step(*zip(*front, strict=True), where="post", color=INK, linewidth=1, linestyle=":", alpha=0.7)
        for colour, marker, (name, curve) in zip(colours(), MARKERS * 20, curves.items(), strict=False):
            if curve.spread_of_x is not None and curve.spread_of_y is not None:
                left_bars = np.minimum(curve.x, curve.spread_of_x)  # no x below 0
                bars = {"fmt": "none", "ecolor": colour, "alpha": 0.35, "elinewidth": 1.2}
                axes.errorbar(curve.x, curve.y, xerr=[left_bars, curve.spread_of_x], yerr=curve.spread_of_y, **bars)
            axes.plot(curve.x, curve.y, color=colour, marker=marker, markersize=6, linewidth=1.6, label=name, zorder=3)
        if front:  # after the methods, which come first in the legend
            ring = {"markersize": 13, "markerfacecolor": "none", "markeredgecolor": INK, "markeredgewidth": 1.1}
            axes.plot(*zip(*front, strict=True), "o", **ring, label="Pareto front", zorder=4)
        axes.set(xlabel=f"{x_name}   (← better)", ylabel=f"{y_name}   (better →)")
        axes.margins(0.07)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=4, fontsize=10)
        if any(label for curve in curves.values() for label in curve.labels):
            axes.set_title(f"numbers beside points: {label_name}", fontsize=9, loc="right")
        label_points(figure, axes, curves)
        return figure


def exposure_by_merit(
    panels: Mapping[str, NDArray[np.float64]],
    merit: NDArray[np.float64],
    groups: NDArray[Any] | None,
) -> Any:
    """A matplotlib figure of exposure against merit, one panel per policy: one dot per item, coloured by group, with group means marked.

    The line runs through the origin and the mean of all items: above it, an item has more exposure for its merit than the average item.
    """
    names = ["all items"] if groups is None else np.unique(groups).tolist()
    is_discrete = len(np.unique(merit)) <= 12
    with style():
        figure = new_figure(3.1 * len(panels) if len(panels) > 1 else 4.6, 3.7)
        many = len(merit) > MOST_DRAWN_POINTS // len(panels)
        all_axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (title, exposure) in zip(all_axes, panels.items(), strict=True):
            axes.axline((0, 0), (merit.mean(), exposure.mean()), color=INK, linewidth=1, alpha=0.5)
            for number, (colour, marker, name) in enumerate(zip(colours(), MARKERS * 20, names, strict=False)):
                members = np.ones(len(merit), bool) if groups is None else groups == name
                x, y = merit[members], exposure[members]
                # Dots of equal merit are moved sideways at random, or they would hide one another.
                lanes = np.random.default_rng(0).uniform(0, 0.8 / len(names), len(x)) + 0.8 * number / len(names)
                shifted = x + 0.5 * (lanes - 0.4) if is_discrete else x
                opacity = 0.45 if len(x) < 300 else 0.25
                axes.scatter(shifted, y, s=9, color=colour, alpha=opacity, linewidths=0, rasterized=many)
                mean = {"markersize": 10, "markeredgecolor": INK, "markeredgewidth": 1.2, "zorder": 5}
                axes.plot([x.mean()], [y.mean()], marker, color=colour, linestyle="none", label=str(name), **mean)
            axes.set_title(title, fontsize=10)
            axes.set_xlabel("merit")
        all_axes[0].set_ylabel("exposure")
        all_axes[0].set_ylim(bottom=0)
        if groups is not None:
            figure.legend(
                *all_axes[0].get_legend_handles_labels(),
                loc="outside upper left",
                ncols=6,
                fontsize=10,
                title="mean of group",
                title_fontsize=9,
            )
        return figure


def svg(figure: Any, label: str) -> str:
    """A figure as SVG text for use inside an HTML page; ``label`` describes it to readers who do not see it."""
    buffer = io.StringIO()
    with style():
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    # Inside an HTML page SVG needs neither namespaces nor metadata; without them the page holds no web address.
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    text = text.replace(INK, "currentColor")
    for number, colour in enumerate(PALETTE):  # matplotlib writes colours in lower case
        text = text.replace(colour.lower(), f"var(--c{number}, {colour.lower()})")
    narrowest = SMALLEST_SCALE * 72 * figure.get_figwidth()
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}" style="min-width: {narrowest:.0f}pt"', 1)


def file(figure: Any, format: str) -> bytes:
    """A figure as the bytes of an image file, on a white background."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(
            buffer, format=format, dpi=160, facecolor="white", metadata={"Date": None} if format == "svg" else {}
        )
    return buffer.getvalue()


def style() -> Any:
    """Context in which matplotlib draws in the style of reports; an error where matplotlib is not installed."""
    return require("matplotlib", "A figure").rc_context(STYLE)


def new_figure(width: float, height: float) -> Any:
    """An empty matplotlib figure."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def colours() -> Sequence[str]:
    """The colours of lines, repeated for figures with many lines."""
    return PALETTE * 20
