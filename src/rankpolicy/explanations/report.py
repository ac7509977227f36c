"""Figures of explanations, and the HTML page with the figure, the table and how to repeat it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankpolicy.explanations.explanation import Explanation
from rankpolicy.explanations.importance import FeatureImportance
from rankpolicy.files import atomic_write
from rankpolicy.reports import figures
from rankpolicy.reports.figures import PALETTE
from rankpolicy.reports.html import report
from rankpolicy.reports.run_record import RunRecord
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.explanations.explanation import Explanation
    from rankpolicy.explanations.importance import FeatureImportance


_FORMATS = ("png", "svg")
_WIDTH = 8.0  # inches
_LONGEST_LABEL = 34
_HALF = 0.31  # of the height of a bar, where rows are 1 apart
_BETWEEN = 1 - _HALF


def drawn(target: Any, draw: Callable[[Any], None], *, height: float) -> Any:
    """Draw on the user's axes, or on a figure of its own that goes to a file where a path is given; returns the figure."""
    is_path = isinstance(target, str | os.PathLike)
    if not is_path and target is not None and not hasattr(target, "barh"):
        raise RankPolicyError(
            f"plot draws on matplotlib axes, or to a path that ends in .png or .svg; got {type(target).__name__}."
        )
    format = Path(target).suffix.removeprefix(".").lower() if is_path else ""
    if is_path and format not in _FORMATS:
        raise RankPolicyError(f"the path of a figure must end in .png or .svg; got {str(target)!r}.")
    with figures.style():
        if target is not None and not is_path:
            draw(target)
            return target.figure
        figure = figures.new_figure(_WIDTH, height)
        draw(figure.add_subplot())
    if is_path:
        with atomic_write(target) as file:
            file.write(figures.file(figure, format))
    return figure


def importance_bars(axes: Any, importance: FeatureImportance, *, max_features: int) -> None:
    """Draw the most important features as horizontal bars with their intervals."""
    shown = importance.by_size()[:max_features]
    rows = np.arange(len(shown))
    axes.barh(rows, importance.importances[shown], height=2 * _HALF, color=PALETTE[0], alpha=0.55)
    axes.hlines(rows, importance.lower[shown], importance.upper[shown], color=figures.INK, linewidth=1.4)
    axes.axvline(0, color=figures.INK, linewidth=0.8)
    axes.set_yticks(rows, [_clipped(importance.names[feature]) for feature in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel(importance.meaning)
    num_hidden = len(importance.names) - len(shown)
    title = f"{importance.ranker}: the {len(shown)} most important of {len(importance.names)} features"
    axes.set_title(title if num_hidden else f"{importance.ranker}: importance of features", loc="left", fontsize=11)


def waterfall(axes: Any, explanation: Explanation, *, max_features: int) -> None:
    """Draw what features add, one step per feature, from the base at the top to the value of the item at the bottom."""
    steps = explanation._rows(max_features)
    is_score = explanation.of == "score"
    level, last = explanation.base, len(steps) + 1
    reach = [explanation.base, explanation.value]
    labels = [_clipped(explanation.reference_name)]
    for row, (name, item, other, value) in enumerate(steps, 1):
        helps = value > 0 if is_score else value < 0
        colour = PALETTE[0] if helps else PALETTE[1]
        axes.barh(row, value, left=level, height=2 * _HALF, color=colour, alpha=0.8)
        axes.vlines(level, row - _BETWEEN if row > 1 else 0, row - _HALF, color=figures.INK, linewidth=0.8, alpha=0.6)
        level += value
        reach.append(level)
        change = f"{_clipped(other, 14)} → " if explanation.over is not None else "= "
        labels.append(f"{_clipped(name)}\n{change}{_clipped(item, 14)}" if item else name)
    axes.vlines(level, last - _BETWEEN, last, color=figures.INK, linewidth=0.8, alpha=0.6)
    ends = [explanation.base, explanation.value]
    axes.plot(ends, [0, last], "D", color=figures.INK, markersize=6, zorder=4)
    labels.append(_clipped(explanation.item))
    low, high = min(reach), max(reach)
    room = 0.16 * (high - low or 1)
    axes.set_xlim(low - room, high + room)
    _annotate(axes, explanation, steps)
    axes.set_yticks(range(last + 1), labels)
    for row, tick in enumerate(axes.get_yticklabels()):
        if row in (0, last):
            tick.set_fontweight("bold")
        else:
            tick.set_fontsize(9)
    axes.set_ylim(last + 0.6, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.locator_params(axis="x", nbins=6)
    if not is_score:
        axes.invert_xaxis()
    axes.set_xlabel("score   (higher ranks first →)" if is_score else "expected rank   (1 is the top →)")
    axes.set_title(_title(explanation), loc="left", fontsize=11)


def _annotate(axes: Any, explanation: Explanation, steps: list[tuple[str, str, str, float]]) -> None:
    """Write each number beside its step, on the side to which the step leads."""
    towards = 1 if explanation.of == "score" else -1  # the axis of ranks runs from high to low
    level = explanation.base
    style = {"textcoords": "offset points", "va": "center", "fontsize": 9}
    for row, (_, _, _, value) in enumerate(steps, 1):
        level += value
        side = 1 if value * towards >= 0 else -1
        text, align = f"{value:+.3g}", "left" if side > 0 else "right"
        axes.annotate(text, (level, row), xytext=(4 * side, 0), ha=align, **style)
    for row, value in ((0, explanation.base), (len(steps) + 1, explanation.value)):
        axes.annotate(f"{value:.4g}", (value, row), xytext=(8, 0), ha="left", fontweight="bold", **style)


def _title(explanation: Explanation) -> str:
    what = "score" if explanation.of == "score" else "expected rank"
    against = "the background" if explanation.over is None else _clipped(explanation.over)
    return f"Query {_clipped(explanation.query)}: {what} of {_clipped(explanation.item)} against {against}"


def _clipped(text: str, most: int = _LONGEST_LABEL) -> str:
    short = " ".join(text.split())
    short = short if len(short) <= most else short[: most - 1] + "…"
    return short.replace("$", r"\$")  # otherwise matplotlib sets what follows as a formula


def explanation_page(explained: Explanation | FeatureImportance, run: RunRecord) -> str:
    """The HTML page of an explanation or of importances."""
    rows = explained.to_frame().to_dicts()
    if isinstance(explained, FeatureImportance):
        return report(
            "importance",
            title="Importance of features",
            lead=f"{explained.ranker}: {explained.meaning}.",
            run=run,
            importance=explained,
            rows=rows,
            bars=figures.svg(explained.plot(), "importance of features"),
        )
    return report(
        "explanation",
        title="Why this item",
        lead=_lead(explained),
        run=run,
        explanation=explained,
        rows=rows,
        waterfall=figures.svg(explained.plot(), explained.title),
    )


def _lead(explanation: Explanation) -> str:
    value_name = "score" if explanation.of == "score" else "expected rank"
    reference = "the mean of the background" if explanation.over is None else explanation.over
    return (
        f"{explanation.ranker}, query {explanation.query}: {explanation.item} has the {value_name} {explanation.value:.4f}, "
        f"{reference} has {explanation.base:.4f}. What each feature adds to that difference, "
        f"{explanation.value - explanation.base:+.4f}, as Shapley values, {explanation.method}."
    )
