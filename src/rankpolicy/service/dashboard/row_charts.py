"""Charts with one row per name: bars, and values with intervals, each beside a mark to be compared with."""

from __future__ import annotations

from collections.abc import Sequence

from rankpolicy.service.dashboard.charts import NUM_COLOURS, WIDTH, Format
from rankpolicy.service.dashboard.html import Markup, element
from rankpolicy.service.dashboard.numbers import nice_ticks


def paired_bars(rows: Sequence[tuple[str, float, float | None]], *, about: str, form: Format, colour: int) -> Markup:
    """Horizontal bars with a mark to be compared with, one row per name.

    Parameters
    ----------
    rows
        Name, length of the bar, and place of the mark.
    about
        What the chart shows, for those who cannot see it.
    form
        How values are written.
    colour
        A number from 0.
    """
    row_height, left = 34, 4
    top = nice_ticks(max((max(bar, mark or 0) for _, bar, mark in rows), default=1))[-1]
    scale = (WIDTH - left - 60) / top
    marks = []
    for place, (name, bar, mark) in enumerate(rows):
        y = place * row_height + 6
        title = f"{name}: exposure {form(bar)}" + ("" if mark is None else f", merit {form(mark)}")
        parts = [
            element("title", title),
            element("text", _cut(name), x=left, y=y + 9, class_="row-name"),
            element(
                "rect",
                x=left,
                y=y + 14,
                width=f"{max(0.5, bar * scale):.1f}",
                height=10,
                rx=1.5,
                class_=f"column c{colour % NUM_COLOURS}",
                data_value=repr(bar),
            ),
            element("text", form(bar), x=f"{left + max(bar, mark or 0) * scale + 7:.1f}", y=y + 23, class_="value"),
        ]
        if mark is not None:
            x = f"{left + mark * scale:.1f}"
            parts.append(element("line", x1=x, x2=x, y1=y + 11, y2=y + 27, class_="target", data_value=repr(mark)))
        marks.append(element("g", parts))
    size = f"0 0 {WIDTH} {len(rows) * row_height + 8}"
    return element("svg", marks, viewBox=size, class_="chart", role="img", aria_label=about)


def interval_rows(
    rows: Sequence[tuple[str, float, float | None, float | None, float]], *, about: str, form: Format
) -> Markup:
    """Values with intervals along horizontal lines, each with a mark to be compared with, one row per name.

    Parameters
    ----------
    rows
        Name, value, low, high, and place of the mark.
    about
        What the chart shows, for those who cannot see it.
    form
        How values are written.
    """
    row_height, left = 34, 6
    ends = [
        (value if low is None else low, value if high is None else high, mark) for _, value, low, high, mark in rows
    ]
    least, most = min(0.0, *(low for low, _, _ in ends)), max(max(high, mark) for _, high, mark in ends)
    scale = (WIDTH - left - 70) / (most - least or 1.0)
    marks = []
    for place, (name, value, low, high, mark) in enumerate(rows):
        y = place * row_height + 25
        interval = "" if low is None or high is None else f" ({form(low)} to {form(high)})"
        x, x_mark = left + (value - least) * scale, left + (mark - least) * scale
        parts = [
            element("title", f"{name}: {form(value)}{interval}; shown {form(mark)}"),
            element("text", _cut(name), x=left, y=y - 10, class_="row-name"),
            element("line", x1=left, x2=WIDTH - 64, y1=y, y2=y, class_="grid"),
        ]
        last = max(x, x_mark)
        if low is not None and high is not None:
            first, last = left + (low - least) * scale, max(last, left + (high - least) * scale)
            x_high = left + (high - least) * scale
            parts.append(element("line", x1=f"{first:.1f}", x2=f"{x_high:.1f}", y1=y, y2=y, class_="whisker c0"))
        parts += [
            element(
                "line",
                x1=f"{x_mark:.1f}",
                x2=f"{x_mark:.1f}",
                y1=y - 7,
                y2=y + 7,
                class_="target",
                data_value=repr(mark),
            ),
            element("circle", cx=f"{x:.1f}", cy=y, r=4, class_="dot c0", data_value=repr(value)),
            element("text", form(value), x=f"{last + 8:.1f}", y=y + 4, class_="value"),
        ]
        marks.append(element("g", parts))
    size = f"0 0 {WIDTH} {len(rows) * row_height + 8}"
    return element("svg", marks, viewBox=size, class_="chart", role="img", aria_label=about)


def _cut(name: str) -> str:
    return name if len(name) <= 48 else name[:47] + "…"
