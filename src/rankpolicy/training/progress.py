"""A progress bar on stderr for long training."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from rankpolicy.training.fit import ReportEpoch


@contextmanager
def epoch_progress(description: str, num_epochs: int, *, enabled: bool | None) -> Iterator[ReportEpoch | None]:
    """A progress bar: gives a callback for the fit loop that shows epochs, the latest numbers and the time left.

    Parameters
    ----------
    description
        The text before the bar.
    num_epochs
        How many epochs there are at most.
    enabled
        Whether to show it; None: when stderr is a terminal and rich is installed. Without a bar the callback is None.
    """
    if enabled is None:
        enabled = sys.stderr.isatty() and find_spec("rich") is not None
    if not enabled:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[numbers]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=num_epochs, numbers="")

        def report_epoch(epoch: int, latest: dict[str, float]) -> None:
            numbers = "  ".join(f"{name} {number:.4f}" for name, number in latest.items())
            bar.update(task, completed=epoch, numbers=numbers)

        yield report_epoch
