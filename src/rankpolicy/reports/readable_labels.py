"""Numbers at logarithmic axes and at points of a figure, where there is room for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rankpolicy.reports.figures import Curve


LABELS_APART = 28.0  # pixels between labelled points of a curve


def use_readable_log_ticks(axis: Any) -> None:
    """Give a logarithmic axis ticks at round numbers, written as plain numbers, at most about ten. Call it when all lines are drawn."""
    from matplotlib.ticker import FixedLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(FixedLocator(round_numbers(low, high)))
    axis.set_major_formatter(lambda value, _: plain_number(value))
    axis.set_minor_formatter(NullFormatter())


def round_numbers(low: float, high: float) -> list[float]:
    """Round numbers between two positive ones, about evenly spaced on a logarithmic scale.

    >>> round_numbers(0.15, 1.1)
    [0.2, 0.4, 0.6, 0.8, 1.0]
    >>> round_numbers(1, 150)
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    >>> round_numbers(0.82, 1.02)
    [0.85, 0.9, 0.95, 1.0]
    """
    decades = math.log10(high / low)
    if decades < 0.4:
        step = 10 ** math.floor(math.log10(high - low))
        step = next(step * factor for factor in (0.1, 0.2, 0.25, 0.5, 1, 2) if (high - low) / (step * factor) <= 6)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return [float(f"{step * multiple:.6g}") for multiple in range(first, last + 1)]
    leading = (1, 2, 4, 6, 8) if decades < 1.3 else (1, 2, 5) if decades < 3 else (1,)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    every = max(1, math.ceil(decades / 8))
    numbers = [float(f"{digit}e{power}") for power in powers if power % every == 0 for digit in leading]
    return [number for number in numbers if low * (1 - 1e-9) <= number <= high * (1 + 1e-9)]


def plain_number(value: float) -> str:
    """A number without exponent, with thousands marked.

    >>> plain_number(0.00002), plain_number(0.6000000000000001), plain_number(10_000)
    ('0.00002', '0.6', '10,000')
    """
    rounded = float(f"{value:.6g}")
    if abs(rounded) >= 1000:
        return f"{rounded:,.0f}"
    return str(np.format_float_positional(rounded, trim="-"))


def label_points(figure: Any, axes: Any, curves: Mapping[str, Curve]) -> None:
    """Write labels beside the ends of each curve and beside points far enough from other labels, where there is free space."""
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()  # pixel coordinates are known only after drawing
    drawn = [axes.transData.transform(np.column_stack([curve.x, curve.y])) for curve in curves.values()]
    occupied = [Bbox.from_bounds(x - 5, y - 5, 10, 10) for points in drawn for x, y in points]
    occupied += [Bbox.from_bounds(x - 1, y - 1, 2, 2) for points in drawn for x, y in _along(points)]
    for points, curve in zip(drawn, curves.values(), strict=True):
        labelled: list[NDArray[np.float64]] = []
        ends_first = sorted(range(len(points)), key=lambda index: index not in (0, len(points) - 1))
        for index in ends_first:
            is_apart = all(np.hypot(*(points[index] - other)) > LABELS_APART for other in labelled)
            if curve.labels[index] and is_apart:
                labelled.append(points[index])
                _annotate(axes, curve.labels[index], (curve.x[index], curve.y[index]), occupied)


def _annotate(axes: Any, label: str, point: tuple[float, float], occupied: list[Any]) -> None:
    for across, up in ((8, 5), (8, -14), (-8, 5), (-8, -14), (0, 10), (0, -19), (13, -4), (-13, -4)):
        side = "left" if across > 0 else "right" if across < 0 else "center"
        text = axes.annotate(label, point, xytext=(across, up), textcoords="offset points", ha=side, fontsize=9)
        text.set_in_layout(False)
        box = text.get_window_extent()
        if all(axes.bbox.contains(*corner) for corner in box.corners()) and not box.count_overlaps(occupied):
            occupied.append(box)
            return
        text.remove()


def _along(points: NDArray[np.float64], *, step: float = 4.0) -> NDArray[np.float64]:
    """Points (n, 2) every ``step`` pixels along the line through the given points."""
    segments = [points[:1]]
    for a, b in pairwise(points):
        share = np.linspace(0, 1, 1 + int(np.hypot(*(b - a)) / step))[:, None]
        segments.append(a + share * (b - a))
    return np.concatenate(segments)
