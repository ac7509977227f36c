"""Report on a search for settings: what was found, the trials, and which settings matter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rankpolicy.experiments.tuning.trial import Trial, Tuned
from rankpolicy.reports.figures import INK, PALETTE, new_figure, style, svg
from rankpolicy.reports.html import report
from rankpolicy.reports.readable_labels import use_readable_log_ticks
from rankpolicy.reports.run_record import RunRecord

_LOOKS = {"complete": (PALETTE[0], "o", "complete"), "stopped": (PALETTE[4], "v", "stopped early")}
_MANY_TIMES = 20  # a range of numbers whose ends have a larger ratio has a logarithmic axis


def tuning_page(
    tuned: Tuned,
    run: RunRecord,
    *,
    title: str,
    lead: str,
    test: Mapping[str, Mapping[str, Any]] | None = None,
    num_test_queries: int = 0,
) -> str:
    """The HTML page of a search; ``test`` compares the ranker as given with the tuned one, by metric."""
    return report(
        "tuning",
        title=title,
        lead=lead,
        run=run,
        tuned=tuned,
        test=test,
        num_test_queries=num_test_queries,
        progress=progress_figure(tuned),
        importance=importance_figure(tuned.importance) if tuned.importance else "",
        settings=settings_figure(tuned),
        setting_text=partial(_text, form=".4g"),
    )


def progress_figure(tuned: Tuned) -> str:
    """Score of every trial and the best so far as SVG."""
    with style():
        figure = new_figure(7.6, 3.8)
        axes = figure.add_subplot()
        numbers = [trial.number for trial in tuned.trials]
        best = tuned.best_so_far
        axes.step(numbers, best, where="post", color=INK, linewidth=1.4, label="best so far")
        _points(axes, tuned.trials, numbers)
        first_score = tuned.trials[0].score
        if first_score is not None:
            axes.axhline(first_score, color=INK, linewidth=1, linestyle=":", alpha=0.7, label="as given")
        axes.set(xlabel="trial", ylabel=f"validation {tuned.metric}")
        axes.legend(fontsize=9, loc="lower right")
        return svg(figure, "validation score by trial, and the best so far")


def importance_figure(importance: Mapping[str, float]) -> str:
    """Share of the variance of scores that each setting explains as SVG bars, largest first."""
    ordered = sorted(importance.items(), key=lambda pair: -pair[1])
    with style():
        figure = new_figure(7.0, 0.9 + 0.36 * len(ordered))
        axes = figure.add_subplot()
        axes.barh(range(len(ordered)), [share for _, share in ordered], color=PALETTE[0], height=0.62)
        axes.set_yticks(range(len(ordered)), [name for name, _ in ordered])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        for row, (_, share) in enumerate(ordered):
            axes.text(share, row, f" {share:.0%}", va="center", fontsize=10)
        axes.set_xlim(0, 1.12 * ordered[0][1])
        axes.set_xlabel("share of the variance of validation scores")
        return svg(figure, "importance of each setting")


def settings_figure(tuned: Tuned) -> str:
    """Score of every trial by the value of each setting as SVG, one panel per setting."""
    names = list(tuned.trials[0].settings)
    columns = min(3, len(names))
    rows = math.ceil(len(names) / columns)
    with style():
        figure = new_figure(3.2 * columns if columns > 1 else 5.0, 2.7 * rows)
        for index, name in enumerate(names, 1):
            axes = figure.add_subplot(rows, columns, index)
            values = [trial.settings[name] for trial in tuned.trials]
            if _are_numbers(values) and len(set(values)) > 6:
                _points(axes, tuned.trials, values)
                positive = [value for value in values if value > 0]
                if len(positive) == len(values) and max(values) > _MANY_TIMES * min(values):
                    axes.set_xscale("log")
                    use_readable_log_ticks(axes.xaxis)
            else:
                texts = _in_order(values)
                _points(axes, tuned.trials, [texts.index(_text(value)) for value in values])
                crowded = sum(map(len, texts)) > 24
                axes.set_xticks(
                    range(len(texts)), texts, rotation=35 if crowded else 0, ha="right" if crowded else "center"
                )
                axes.margins(x=0.12)
            axes.set_xlabel(name)
            if index % columns == 1 % columns:
                axes.set_ylabel(tuned.metric)
            axes.tick_params(labelsize=9)
        return svg(figure, "validation score by the value of each setting")


def _points(axes: Any, trials: Sequence[Trial], positions: Sequence[float]) -> None:
    """Scores of trials, at a position each, in the look of their state."""
    for state, (colour, marker, label) in _LOOKS.items():
        points = [(x, trial.score) for x, trial in zip(positions, trials, strict=True) if trial.state == state]
        if points:
            axes.plot(*zip(*points, strict=True), marker, color=colour, markersize=5, alpha=0.85, label=label)


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _in_order(values: Sequence[Any]) -> list[str]:
    different = {_text(value): value for value in values}
    key = different.__getitem__ if _are_numbers(values) else (lambda text: (len(text), text))
    return sorted(different, key=key)


def _text(value: Any, *, form: str = "g") -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:{form}}" if isinstance(value, float) else str(value)
