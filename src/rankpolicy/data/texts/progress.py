"""A progress bar on stderr for long work on texts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec


@contextmanager
def shown_progress(description: str, total: int, *, enabled: bool | None) -> Iterator[Callable[[int], None]]:
    """A function that says how many more are done; None shows the bar only on a terminal."""
    if enabled is None:
        enabled = sys.stderr.isatty() and find_spec("rich") is not None
    if not enabled:
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda count: bar.advance(task, count)
