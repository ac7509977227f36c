"""The frame of every page: head, navigation, and the parts that figures and tables are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankpolicy.service.dashboard.assets import asset_url
from rankpolicy.service.dashboard.html import Markup, element, joined

PAGES = {"/": "Overview", "/policies": "Policies", "/queries": "Queries", "/audit": "Audit"}


class Cell:
    """A cell of a table that holds a number.

    Parameters
    ----------
    value
        The number itself, kept as an attribute of the cell; None for none.
    shown
        How it is written.
    """

    def __init__(self, value: float | int | None, shown: str) -> None:
        self.value, self.shown = value, shown


def whole_page(
    title: str, *content: Any, here: str = "", is_live: bool = False, can_leave: bool = False, token: str = ""
) -> Markup:
    """A page.

    Parameters
    ----------
    title
        Its title.
    content
        What it shows.
    here
        Path of its entry in the navigation; empty on pages without navigation.
    is_live
        Whether it is read again every other second.
    can_leave
        Whether there is a session to end.
    token
        The token of the forms of this session.
    """
    links = [
        element("a", name, href=path, aria_current="page" if path == here else None) for path, name in PAGES.items()
    ]
    leave = can_leave and element(
        "form",
        element("input", type="hidden", name="token", value=token),
        element("button", "Sign out", class_="plain"),
        method="post",
        action="/logout",
    )
    pause = is_live and element("button", "Pause", type="button", id="pause", class_="plain", hidden=True)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} · rankpolicy"),
        element("link", rel="stylesheet", href=asset_url("dashboard.css")),
        element("link", rel="icon", href=asset_url("icon.svg"), type="image/svg+xml"),
        element("script", src=asset_url("dashboard.js"), defer=True) if is_live else None,
    )
    header = element(
        "header",
        element("a", "rankpolicy", href="/", class_="brand"),
        element("nav", links, aria_label="Pages") if here else None,
        element("div", pause, leave, class_="tools"),
    )
    body = element(
        "body",
        element("a", "Skip to content", href="#content", class_="skip"),
        header,
        element("main", content, id="content", tabindex="-1", data_live_page=is_live),
    )
    return joined(Markup("<!doctype html>\n"), element("html", head, body, lang="en"))


def figure(name: str, title: str, note: str | None, *content: Any, numbers: Markup | None = None) -> Markup:
    """A card with a chart.

    Parameters
    ----------
    name
        Its id.
    title, note
        What it shows, and how to read it; None where the section says so.
    content
        Chart and legend.
    numbers
        The table behind the chart.
    """
    details = numbers is not None and element(
        "details",
        element("summary", "Numbers"),
        element(
            "div",
            numbers,
            id=f"{name}-numbers",
            class_="scroll",
            data_live=True,
            tabindex="0",
            role="region",
            aria_label=f"Numbers: {title}",
        ),
    )
    return element(
        "figure",
        element("figcaption", element("h2", title), element("p", note, class_="note") if note else None),
        element("div", content, id=f"{name}-plot", class_="plot", data_live=True),
        details,
        class_="card",
        id=name,
    )


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], *, caption: str = "") -> Markup:
    """A table; cells are texts, markup or ``Cell``.

    Parameters
    ----------
    head
        Names of the columns.
    rows
        The cells.
    caption
        What it shows, for those who cannot see it.
    """
    is_number = [any(isinstance(row[place], Cell) for row in rows) for place in range(len(head))]
    columns = [
        element("th", name, scope="col", class_="number" if right else None)
        for name, right in zip(head, is_number, strict=True)
    ]
    body = [element("tr", [_cell(cell) for cell in row]) for row in rows]
    return element(
        "table",
        element("caption", caption, class_="hidden") if caption else None,
        element("thead", element("tr", columns)),
        element("tbody", body),
    )


def _cell(cell: Any) -> Markup:
    if isinstance(cell, Cell):
        value = None if cell.value is None else repr(cell.value)
        return element("td", cell.shown, class_="number", data_value=value)
    return element("td", cell)
