"""Figures as SVG text that stands inside a page: transparent, in the page's own text colour, with nothing to load."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.evaluation import MetricTable
from rankpolicy.types import MissingDependencyError

# Okabe & Ito 2008: told apart by people who do not see all colours, on light and on dark paper.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK = "#010203"  # stands for the page's text colour, which replaces it
MOST_DRAWN_POINTS = 4000
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
    """Training and validation numbers of a method by epoch or tree, a line a fold, the kept state marked.

    ``histories`` are the ``evals_result_`` of fitted rankers by fold, ``best_steps`` their ``best_iteration_``.
    """
    first = next(iter(histories.values()))
    panels = [(part, name) for part in ("training", "valid_0") for name in first.get(part, {})]
    with _style():
        figure = _figure(4.6 * len(panels) if len(panels) > 1 else 7.0, 3.4)
        for index, (part, name) in enumerate(panels, 1):
            axes = figure.add_subplot(1, len(panels), index)
            for colour, (fold, history) in zip(_colours(), histories.items(), strict=False):
                values, best = history[part][name], best_steps[fold]
                axes.plot(range(1, len(values) + 1), values, color=colour, linewidth=1.6, label=fold)
                if part == "valid_0" and best <= len(values):
                    axes.plot([best], [values[best - 1]], "o", color=colour, markersize=7, label=None)
            axes.set_xlabel(step)
            axes.set_ylabel(f"training {name}" if part == "training" else f"validation {name}")
            if len(histories) > 1 and index == len(panels):
                axes.legend(fontsize=9, loc="lower right")
        return _svg(figure, f"learning curves by {step}")


def metric_intervals(tables: Mapping[str, MetricTable], *, random_state: int = 0) -> str:
    """Mean of each metric and its 95% bootstrap interval over queries, a row a method, a panel a metric."""
    names = next(iter(tables.values())).names
    with _style():
        columns = min(2, len(names))
        rows = math.ceil(len(names) / columns)
        figure = _figure(7.0 if columns == 1 else 9.2, (1.1 + 0.42 * len(tables)) * rows)
        figure.get_layout_engine().set(wspace=0.08)
        for index, name in enumerate(names, 1):
            axes = figure.add_subplot(rows, columns, index)
            for row, (colour, table) in enumerate(zip(_colours(), tables.values(), strict=False)):
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
        return _svg(figure, f"{', '.join(names)} of {', '.join(tables)} with 95% intervals")


def query_scatter(values: Mapping[str, NDArray[np.float64]], *, metric: str) -> str:
    """Two methods query by query: above the diagonal the second is better; counts of both and of ties in the title."""
    (a, of_a), (b, of_b) = values.items()
    counted = ~(np.isnan(of_a) | np.isnan(of_b))
    of_a, of_b = of_a[counted], of_b[counted]
    ties = int(np.isclose(of_a, of_b, rtol=0, atol=1e-12).sum())
    wins_of_b = int((of_b > of_a + 1e-12).sum())
    wins_of_a = len(of_a) - ties - wins_of_b
    with _style():
        figure = _figure(5.4, 5.2)
        axes = figure.add_subplot()
        lowest = min(of_a.min(initial=0.0), of_b.min(initial=0.0))
        highest = max(of_a.max(initial=lowest + 1e-9), of_b.max(initial=lowest + 1e-9))
        axes.plot([lowest, highest], [lowest, highest], color=INK, linewidth=1, alpha=0.6)
        opacity = 0.7 if len(of_a) < 1000 else 0.35
        many = len(of_a) > MOST_DRAWN_POINTS
        axes.scatter(of_a, of_b, s=18, color=PALETTE[0], alpha=opacity, linewidths=0, rasterized=many)
        axes.set_aspect("equal")
        axes.set_xlabel(f"{metric} of {a}")
        axes.set_ylabel(f"{metric} of {b}")
        axes.set_title(f"{b} better {wins_of_b} · equal {ties} · {a} better {wins_of_a}", fontsize=11)
        return _svg(figure, f"{metric} of {a} and {b} query by query")


def _style() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingDependencyError("Figures need matplotlib: pip install matplotlib.") from None
    return matplotlib.rc_context(STYLE)


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _colours() -> Sequence[str]:
    return PALETTE * 20


def _svg(figure: Any, label: str) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    # A browser knows the namespaces of SVG inside a page; without them and the metadata no address is left in it.
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    text = text.replace(INK, "currentColor")
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
