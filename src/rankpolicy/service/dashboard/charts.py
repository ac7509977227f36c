"""Charts as inline SVG: every mark carries its value, and every chart has its numbers as a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rankpolicy.service.dashboard.html import Markup, element
from rankpolicy.service.dashboard.numbers import nice_ticks

WIDTH, HEIGHT = 400, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 10, 30
_INNER_WIDTH, _INNER_HEIGHT = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
NUM_COLOURS = 8

Format = Callable[[float], str]


class Point(NamedTuple):
    """A value of a chart.

    Parameters
    ----------
    x, y
        Where it is.
    low, high
        Its interval; None for none.
    label
        What x is, in words.
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""


class Series(NamedTuple):
    """Values of one name and colour.

    Parameters
    ----------
    name
        For the legend.
    colour
        A number from 0.
    points
        The values, in the order of x.
    """

    name: str
    colour: int
    points: Sequence[Point]


def line_chart(
    series: Sequence[Series],
    *,
    about: str,
    form: Format,
    ticks: Sequence[tuple[float, str]],
    gap: float = math.inf,
    has_bands: bool = False,
) -> Markup:
    """Lines over time.

    Parameters
    ----------
    series
        The lines.
    about
        What the chart shows, for those who cannot see it.
    form
        How values are written.
    ticks
        Places on the horizontal axis with their names, the first and the last at the ends.
    gap
        Points further apart are not joined.
    has_bands
        Whether intervals are drawn as bands.
    """
    first, last = ticks[0][0], ticks[-1][0]
    plane = _Plane(_largest(series), lambda x: (x - first) / (last - first or 1))
    marks: list[Markup] = []
    for one in series:
        points = [point for point in one.points if first <= point.x <= last]
        if has_bands:
            marks += [mark for part in _joined(points, gap) for mark in _band(part, one.colour, plane)]
    for one in series:
        points = [point for point in one.points if first <= point.x <= last]
        for part in _joined(points, gap):
            places = " ".join(f"{plane.x(point.x):.1f},{plane.y(point.y):.1f}" for point in part)
            marks.append(element("polyline", points=places, class_=f"line {_colour(one)}"))
        marks += [_dot(one, point, plane.x(point.x), plane, form, radius=2.2) for point in points]
    return _svg(plane, marks, about, form, [(plane.x(x), name) for x, name in ticks])


def interval_chart(series: Sequence[Series], *, about: str, form: Format, x_name: str) -> Markup:
    """Values with intervals at whole numbers, series side by side.

    Parameters
    ----------
    series
        The values; x from 1.
    about
        What the chart shows, for those who cannot see it.
    form
        How values are written.
    x_name
        What x is.
    """
    longest = max((int(point.x) for one in series for point in one.points), default=1)
    plane = _Plane(_largest(series), lambda x: (x - 0.5) / longest)
    gap = min(9.0, 0.7 * _INNER_WIDTH / longest / max(1, len(series)))
    marks: list[Markup] = []
    for number, one in enumerate(series):
        shift = (number - (len(series) - 1) / 2) * gap
        for point in one.points:
            x = plane.x(point.x) + shift
            if point.low is not None and point.high is not None:
                low, high = plane.y(point.low), plane.y(min(point.high, plane.top))
                marks.append(
                    element(
                        "line",
                        x1=f"{x:.1f}",
                        x2=f"{x:.1f}",
                        y1=f"{low:.1f}",
                        y2=f"{high:.1f}",
                        class_=f"whisker {_colour(one)}",
                    )
                )
            marks.append(_dot(one, point, x, plane, form, radius=3.4))
    every = -(-longest // 10)
    ticks = [(plane.x(x), str(x)) for x in range(1, longest + 1) if (x - 1) % every == 0]
    return _svg(plane, marks, about, form, ticks, x_name)


def column_chart(columns: Sequence[tuple[str, float, str]], *, about: str, form: Format, colour: int) -> Markup:
    """Columns, one per name.

    Parameters
    ----------
    columns
        Name, value, and what the column is in words.
    about
        What the chart shows, for those who cannot see it.
    form
        How values are written.
    colour
        A number from 0.
    """
    plane = _Plane(max((value for _, value, _ in columns), default=0), lambda x: (x + 0.5) / len(columns))
    width = 0.8 * _INNER_WIDTH / max(1, len(columns))
    marks = []
    for place, (_, value, label) in enumerate(columns):
        top = plane.y(value)
        mark = element("title", f"{label}: {form(value)}")
        marks.append(
            element(
                "g",
                mark,
                element(
                    "rect",
                    x=f"{plane.x(place) - width / 2:.1f}",
                    y=f"{top:.1f}",
                    width=f"{width:.1f}",
                    height=f"{plane.y(0) - top:.1f}",
                    rx=1.5,
                    class_=f"column c{colour % NUM_COLOURS}",
                    data_value=repr(value),
                ),
            )
        )
    ticks = [(plane.x(place), name) for place, (name, _, _) in enumerate(columns)]
    return _svg(plane, marks, about, form, ticks)


def legend(series: Sequence[Series]) -> Markup | None:
    """Names beside their colours.

    Parameters
    ----------
    series
        What is shown.
    """
    if not series:
        return None
    keys = [
        element("li", element("span", class_=f"key {_colour(one)}", aria_hidden="true"), element("bdi", one.name))
        for one in series
    ]
    return element("ul", keys, class_="legend")


def time_ticks(span: float, ago: Callable[[float], str]) -> list[tuple[float, str]]:
    """Three places between ``-span`` seconds and now.

    Parameters
    ----------
    span
        Seconds.
    ago
        How a time is named.
    """
    return [(-span, ago(span)), (-span / 2, ago(span / 2)), (0.0, "now")]


class _Plane:
    """From values to places in the picture."""

    def __init__(self, largest: float, across: Callable[[float], float]) -> None:
        self.levels = nice_ticks(largest)
        self.top = self.levels[-1]
        self._across = across

    def x(self, value: float) -> float:
        return _LEFT + _INNER_WIDTH * self._across(value)

    def y(self, value: float) -> float:
        return _TOP + _INNER_HEIGHT * (1 - value / self.top)


def _joined(points: Sequence[Point], gap: float) -> list[list[Point]]:
    """Runs of points that are close to each other."""
    runs: list[list[Point]] = []
    for point in points:
        if runs and point.x - runs[-1][-1].x <= gap:
            runs[-1].append(point)
        else:
            runs.append([point])
    return runs


def _largest(series: Sequence[Series]) -> float:
    # Wide intervals of few observations would flatten everything else.
    values = [point.y for one in series for point in one.points]
    highs = [min(point.high, 2 * max(values)) for one in series for point in one.points if point.high is not None]
    return max(values + highs, default=0.0)


def _svg(
    plane: _Plane, marks: Sequence[Any], about: str, form: Format, ticks: Sequence[tuple[float, str]], x_name: str = ""
) -> Markup:
    grid = []
    for level in plane.levels:
        y = f"{plane.y(level):.1f}"
        grid.append(element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y, class_="axis" if level == 0 else "grid"))
        grid.append(
            element(
                "text",
                form(level).replace(".0 %", " %"),
                x=_LEFT - 6,
                y=f"{plane.y(level) + 3.5:.1f}",
                class_="tick end",
            )
        )
    for place, (x, name) in enumerate(ticks):
        anchor = "end" if place == len(ticks) - 1 and x > WIDTH - 30 else "start" if x < _LEFT + 10 else "middle"
        grid.append(element("text", name, x=f"{x:.1f}", y=HEIGHT - 15, class_=f"tick {anchor}"))
    if x_name:
        grid.append(element("text", x_name, x=_LEFT + _INNER_WIDTH / 2, y=HEIGHT - 2, class_="tick middle"))
    return element("svg", grid, marks, viewBox=f"0 0 {WIDTH} {HEIGHT}", class_="chart", role="img", aria_label=about)


def _dot(one: Series, point: Point, x: float, plane: _Plane, form: Format, *, radius: float) -> Markup:
    interval = f" ({form(point.low)} to {form(point.high)})" if point.low is not None and point.high is not None else ""
    title = element("title", f"{one.name}, {point.label}: {form(point.y)}{interval}")
    circle = element(
        "circle",
        cx=f"{x:.1f}",
        cy=f"{plane.y(point.y):.1f}",
        r=radius,
        class_=f"dot {_colour(one)}",
        data_value=repr(point.y),
    )
    return element("g", title, circle)


def _band(points: Sequence[Point], colour: int, plane: _Plane) -> list[Markup]:
    known = [(plane.x(point.x), point.low, point.high) for point in points if None not in (point.low, point.high)]
    if len(known) < 2:
        return []
    upper = [f"{x:.1f},{plane.y(min(high, plane.top)):.1f}" for x, _, high in known if high is not None]
    lower = [f"{x:.1f},{plane.y(low):.1f}" for x, low, _ in reversed(known) if low is not None]
    return [element("path", d=f"M{' L'.join(upper + lower)}Z", class_=f"band c{colour % NUM_COLOURS}")]


def _colour(one: Series) -> str:
    return f"c{one.colour % NUM_COLOURS}"
