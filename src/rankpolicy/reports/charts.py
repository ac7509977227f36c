"""Geometry of the charts of the dashboard: from values to the picture. ``templates/charts.html.jinja`` draws them as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rankpolicy.reports.numbers import ago, nice_ticks

WIDTH, HEIGHT = 400, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 10, 30
NUM_COLOURS = 8

Scale = Callable[[float], float]


class Point(NamedTuple):
    """A value y at x with its interval, if it has one, and what x is in words."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""

    @property
    def has_interval(self) -> bool:
        return self.low is not None and self.high is not None


class Series(NamedTuple):
    """Values of one name and colour (a number from 0), in the order of x."""

    name: str
    colour: int
    points: Sequence[Point]


class Row(NamedTuple):
    """A value with its name, its interval, if it has one, and a value to compare it with."""

    name: str
    value: float
    mark: float | None
    low: float | None = None
    high: float | None = None


class Plane:
    """The scales of a chart whose values begin at 0, and its ticks as pairs of x and a name."""

    def __init__(self, largest: float, first: float, last: float, ticks: Sequence[tuple[float, str]]) -> None:
        self.levels = nice_ticks(largest)
        self.top = self.levels[-1]
        self.x = linear(first, last, LEFT, WIDTH - RIGHT)
        self.y = linear(0.0, self.top, HEIGHT - BOTTOM, TOP)
        self.ticks = [(self.x(x), name) for x, name in ticks]
        self._first, self._last = first, last

    def runs(self, series: Series, gap: float | None = None) -> list[list[Point]]:
        """Points of the shown time in runs; those that are further apart than ``gap`` are not joined."""
        runs: list[list[Point]] = []
        for point in series.points:
            if self._first <= point.x <= self._last:
                if runs and (gap is None or point.x - runs[-1][-1].x <= gap):
                    runs[-1].append(point)
                else:
                    runs.append([point])
        return runs

    def path(self, points: Sequence[Point]) -> str:
        """The line through points."""
        return " ".join(f"{self.x(point.x)},{self.y(point.y)}" for point in points)

    def band(self, points: Sequence[Point]) -> str:
        """The outline of the intervals of points; empty where fewer than two have one."""
        bounds = [(self.x(point.x), point.low, point.high) for point in points]
        upper = [f"{x},{self.y(min(high, self.top))}" for x, _, high in bounds if high is not None]
        lower = [f"{x},{self.y(low)}" for x, low, _ in reversed(bounds) if low is not None]
        return f"M{' L'.join(upper + lower)}Z" if len(upper) > 1 else ""


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """Where a value between ``low`` and ``high`` lies between ``start`` and ``end``, to a tenth of a unit of the picture."""
    factor = (end - start) / (high - low or 1.0)
    return lambda value: round(start + factor * (value - low), 1)


def time_plane(series: Sequence[Series], span: float) -> Plane:
    """The plane of lines over the last ``span`` seconds; x is negative, now is 0."""
    return Plane(_largest(series), -span, 0.0, [(-span, ago(span)), (-span / 2, ago(span / 2)), (0.0, "now")])


def position_plane(series: Sequence[Series]) -> Plane:
    """The plane of values at the positions of a list, from 1."""
    longest = max((int(point.x) for line in series for point in line.points), default=1)
    step = -(-longest // 10)
    return Plane(_largest(series), 0.5, longest + 0.5, [(x, str(x)) for x in range(1, longest + 1, step)])


def shifts(plane: Plane, num_series: int) -> list[float]:
    """How far marks at the same position are moved sideways, one number per series, so that they do not hide each other."""
    gap = min(9.0, 0.7 * (plane.x(1.0) - plane.x(0.0)) / max(1, num_series))
    return [gap * (number - (num_series - 1) / 2) for number in range(num_series)]


def column_plane(columns: Sequence[tuple[str, float, str]]) -> Plane:
    """The plane of columns, one per name, at 0, 1, ..."""
    ticks = [(float(number), name) for number, (name, _, _) in enumerate(columns)]
    return Plane(max((value for _, value, _ in columns), default=0), -0.5, len(columns) - 0.5, ticks)


def bar_scale(rows: Sequence[Row]) -> Scale:
    """The horizontal scale of bars, which begin at 4 and leave room for their numbers."""
    top = nice_ticks(max((max(row.value, row.mark or 0) for row in rows), default=1))[-1]
    return linear(0.0, top, 4.0, WIDTH - 60.0)


def interval_scale(rows: Sequence[Row]) -> Scale:
    """The horizontal scale of intervals, which holds 0 and leaves room for their numbers."""
    ends = [end for row in rows for end in (row.value, row.low, row.high, row.mark) if end is not None]
    return linear(min(0.0, *ends), max(ends), 6.0, WIDTH - 70.0)


def _largest(series: Sequence[Series]) -> float:
    values = [point.y for line in series for point in line.points]
    # Wide intervals of few observations would flatten everything else.
    highs = [min(point.high, 2 * max(values)) for line in series for point in line.points if point.high is not None]
    return max(values + highs, default=0.0)
