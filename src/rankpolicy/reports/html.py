"""HTML pages that are one self-contained file: style included, no scripts, light or dark as the reader's system is set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rankpolicy.files import atomic_write
from rankpolicy.reports.colours import ON_DARK, ON_LIGHT, css_variables

LONG_TEXT = 60  # characters from which the text of a cell may be broken into lines

CSS = """
:root { color-scheme: light dark; --ink: #1c2024; --paper: #fdfdfc; --soft: #5c636a; --line: #dcdfe3; --mark: #eef3f8;
  --edge: #dfe3e7; LIGHT }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ea; --paper: #15181b; --soft: #a8b0b8; --line: #3a4047; --mark: #1f2830; --edge: #2f363d;
    DARK }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 60rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .6rem; padding-top: .9rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
p { max-width: 44rem; margin: .5rem 0; }
.soft, figcaption { color: var(--soft); font-size: .9rem; }
figure { margin: 1rem 0 1.6rem; }
figcaption { max-width: 44rem; padding-top: .5rem; }
.scroll { overflow-x: auto; background: linear-gradient(to right, var(--paper) 40%, transparent) 0 0,
  linear-gradient(to left, var(--paper) 40%, transparent) 100% 0, linear-gradient(to right, var(--edge), transparent) 0 0,
  linear-gradient(to left, var(--edge), transparent) 100% 0; background-attachment: local, local, scroll, scroll;
  background-repeat: no-repeat; background-size: 3rem 100%, 3rem 100%, 1rem 100%, 1rem 100%; }
.scroll:focus-visible { outline: 2px solid var(--soft); outline-offset: 2px; }
.scroll svg { display: block; height: auto; max-width: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem 1.1rem .35rem 0; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; color: var(--soft); font-size: .85rem; }
td.number, th.number { text-align: right; }
td.best { font-weight: 700; }
td.long { white-space: normal; min-width: 18rem; overflow-wrap: anywhere; }
td small { display: block; font-weight: 400; color: var(--soft); }
summary { cursor: pointer; color: var(--soft); }
pre, code { font: .9em/1.5 ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }
pre { background: var(--mark); padding: .8rem 1rem; border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 30rem) { body { padding: 1.25rem .9rem 3rem; } h1 { font-size: 1.5rem; } }
""".replace("LIGHT", css_variables(ON_LIGHT)).replace("DARK", css_variables(ON_DARK))


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of a page.

    Parameters
    ----------
    title
        Its heading.
    parts
        HTML fragments below the heading, such as those of ``paragraph``, ``table`` and ``figure``.
    """

    title: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table that is not plain text.

    Parameters
    ----------
    text
        Its text.
    is_number
        Whether to align it to the right.
    is_best
        Whether to set it in bold.
    below
        A second, smaller line.
    """

    text: str
    is_number: bool = True
    is_best: bool = False
    below: str = ""


def html_page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The text of an HTML page.

    Parameters
    ----------
    title
        Title of the page.
    lead
        First paragraph, below the title.
    sections
        The sections of the page.
    """
    body = "\n".join(f"<h2>{escape(section.title)}</h2>\n" + "\n".join(section.parts) for section in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{paragraph(lead)}\n{body}\n</body>\n</html>\n"
    )


def paragraph(text: str, *, soft: bool = False) -> str:
    """A paragraph; ``soft`` sets it in a lighter colour."""
    return f'<p class="soft">{escape(text)}</p>' if soft else f"<p>{escape(text)}</p>"


def heading(text: str) -> str:
    """A heading inside a section."""
    return f"<h3>{escape(text)}</h3>"


def command(text: str) -> str:
    """A command line in a fixed-width font."""
    return f"<pre>{escape(text)}</pre>"


def figure(svg: str, caption: str) -> str:
    """A figure, given as SVG text, with its caption."""
    return _scrolling(svg, caption)


def table(header: Sequence[str], rows: Sequence[Sequence[str | Cell]], *, caption: str = "") -> str:
    """A table; columns whose first cell is a number are aligned to the right.

    Parameters
    ----------
    header
        Names of the columns.
    rows
        Cells of each row, plain text or ``Cell``.
    caption
        Text below the table, which stays in place where a wide table scrolls; empty (the default) for none.
    """
    numeric = [isinstance(cell, Cell) and cell.is_number for cell in rows[0]] if rows else [False] * len(header)
    head = "".join(
        f"<th{' class=number' if right else ''}>{escape(name)}</th>"
        for name, right in zip(header, numeric, strict=True)
    )
    lines = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return _scrolling(f"<table><thead><tr>{head}</tr></thead><tbody>\n{lines}\n</tbody></table>", caption)


def details(summary: str, parts: Sequence[str]) -> str:
    """HTML fragments that a reader opens by a click on their summary."""
    return f"<details><summary>{escape(summary)}</summary>\n{chr(10).join(parts)}\n</details>"


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


def _scrolling(content: str, caption: str) -> str:
    """A figure whose content scrolls sideways where it is wider than the page, with its caption below; the keyboard reaches it too."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure><div class="scroll" tabindex="0">{content}</div>{below}</figure>'


def _cell(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return f'<td class="long">{escape(cell)}</td>' if len(cell) > LONG_TEXT else f"<td>{escape(cell)}</td>"
    names = " ".join(name for name, on in (("number", cell.is_number), ("best", cell.is_best)) if on)
    below = f"<small>{escape(cell.below)}</small>" if cell.below else ""
    return f'<td class="{names}">{escape(cell.text)}{below}</td>'
