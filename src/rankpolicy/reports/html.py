"""HTML of reports and of the dashboard: the templates of this package, in which every text is escaped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from rankpolicy.files import atomic_write
from rankpolicy.optional import require
from rankpolicy.reports import charts, numbers
from rankpolicy.reports.run_record import RunRecord


@cache
def environment() -> Any:
    """The one environment of templates, which are named by their path in this package. A name that no page gives them is an error."""
    jinja2 = require("jinja2", "A page of HTML")
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("rankpolicy", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,  # no look at the file of a template for every page that a service answers
    )
    templates.filters |= numbers.FILTERS
    templates.globals |= numbers.FILTERS | {"geometry": charts}
    return templates


def rendered(template: str, **values: Any) -> str:
    """A page from its template and the values that it shows."""
    return str(environment().get_template(template).render(values))


def macro(name: str, *arguments: Any, template: str = "reports/templates/parts.html.jinja", **options: Any) -> str:
    """A fragment of HTML: markup, which templates do not escape again."""
    fragment: str = getattr(environment().get_template(template).module, name)(*arguments, **options)
    return fragment


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of a page.

    Parameters
    ----------
    title
        Its heading.
    fragments
        HTML below the heading, such as those of ``paragraph`` and ``table``.
    """

    title: str
    fragments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A number in a table, in bold where it is the best, with a second, smaller line below."""

    text: str
    is_best: bool = False
    below: str = ""


def html_page(title: str, lead: str, sections: Sequence[Section], run: RunRecord | None = None) -> str:
    """The text of an HTML page.

    Parameters
    ----------
    title
        Title of the page.
    lead
        First paragraph, below the title.
    sections
        The sections of the page.
    run
        Command, seed, data and versions, for the last section; None (the default) for none.
    """
    return report("report", title=title, lead=lead, sections=sections, run=run)


def report(name: str, *, title: str, lead: str, run: RunRecord | None, **values: Any) -> str:
    """The page of a report, from its template."""
    return rendered(f"reports/templates/{name}.html.jinja", title=title, lead=lead, run=run, **values)


def paragraph(text: str) -> str:
    """A paragraph."""
    return macro("paragraph", text)


def table(header: Sequence[str], rows: Sequence[Sequence[str | Cell]], *, caption: str = "") -> str:
    """A table with its caption below, which stays in place where a wide table scrolls."""
    numeric = [name for column, name in enumerate(header) if any(isinstance(row[column], Cell) for row in rows)]
    return macro("captioned", caption, caller=lambda: macro("table", header, rows, numeric))


def write_page(path: str | os.PathLike[str], html: str) -> None:
    """Write a page to a file, completely or not at all.

    Parameters
    ----------
    path
        Where to write it; an existing file is replaced.
    html
        Text of the page, from ``html_page``.
    """
    with atomic_write(path) as file:
        file.write(html.encode())
