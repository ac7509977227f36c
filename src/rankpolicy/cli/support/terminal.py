"""Tables and lines on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDTH_OF_FILES = 140


def console() -> Console:
    """The console that tables are drawn on; wide when stdout is a file, so that rows are not broken."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_OF_FILES)


def show(text: str, *, dim: bool = False, soft_wrap: bool = False) -> None:
    """Print a text on stdout as it is, square brackets included."""
    console().print(text, style="dim" if dim else None, markup=False, soft_wrap=soft_wrap)


def show_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    numbers_from: int | None = 1,
    title: str | None = None,
) -> None:
    """Draw a table on stdout; columns from ``numbers_from`` on are aligned to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=title)
    for index, name in enumerate(header):
        is_number = numbers_from is not None and index >= numbers_from
        table.add_column(Text(name), justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console().print(table)


def styled(text: str, style: str) -> Text:
    """A text in a style of rich, such as "bold" or "red"."""
    from rich.text import Text

    return Text(text, style=style)
