"""Reports of training: a progress bar in a terminal, a line every few seconds elsewhere, Python logging, and the user's callbacks."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from numbers import Integral
from typing import Any

from rankpolicy.interruption import Interruption
from rankpolicy.training.callbacks import Callback, TrainingProgress, as_callbacks
from rankpolicy.training.network_fit import ReportEpoch
from rankpolicy.types import RankPolicyError

logger = logging.getLogger("rankpolicy.training")
SECONDS_BETWEEN_LINES = 5.0

_Show = Callable[[TrainingProgress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """Who hears of training.

    Parameters
    ----------
    progress
        Whether to show progress on stderr: None does so unless it would take a bar and rich is missing.
    every
        Show a line after every so many iterations instead of a bar or a line every few seconds; None: not.
    callbacks
        The user's callbacks.
    settings
        The settings of the ranker, for the callbacks.
    interruption
        Whether Ctrl-C was pressed.
    """

    progress: bool | None = None
    every: int | None = None
    callbacks: tuple[Callback, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    interruption: Interruption = field(default_factory=Interruption)

    def is_over(self) -> bool:
        """Whether a callback or Ctrl-C wants the epoch to end."""
        return self.interruption.is_requested or any(callback.is_over() for callback in self.callbacks)


def report_options(
    progress: bool | None, verbose: bool | int | None, callbacks: Any, *, settings: Mapping[str, Any]
) -> ReportOptions:
    """Who hears of training, from what a user gave to ``fit``."""
    every = None
    if progress is not None and not isinstance(progress, bool | int):
        raise RankPolicyError(f"progress must be True, False or None; got {progress!r:.60}.")
    if verbose is not None:
        if not isinstance(verbose, Integral) or verbose < 0:
            raise RankPolicyError(f"verbose must be True, False or a number of iterations; got {verbose!r:.60}.")
        if progress is not None and bool(verbose) != progress:
            raise RankPolicyError(f"give progress or verbose, not both; got progress={progress} and verbose={verbose}.")
        progress = bool(verbose)
        every = None if isinstance(verbose, bool) or verbose < 2 else int(verbose)
    named = () if callbacks is None else as_callbacks(callbacks)
    return ReportOptions(progress=progress, every=every, callbacks=named, settings=settings)


@contextmanager
def epoch_progress(description: str, num_epochs: int, options: ReportOptions) -> Iterator[ReportEpoch]:
    """Report training: gives a function for the fit loop that takes the epochs done and the latest numbers, and says whether to stop.

    Every epoch is logged at level DEBUG by the logger "rankpolicy.training", a line every few seconds and at the end at level INFO. These
    lines go to stderr where no handler shows them.

    Parameters
    ----------
    description
        Class name of the ranker.
    num_epochs
        How many epochs there are at most.
    options
        Who hears of it.
    """
    state = TrainingProgress(
        ranker=description, iteration=0, num_iterations=num_epochs, metrics={}, settings=options.settings
    )
    with ExitStack() as stack:
        in_terminal = sys.stderr.isatty() and find_spec("rich") is not None
        is_bar = options.progress is not False and options.every is None and in_terminal
        show = stack.enter_context(_bar(state) if is_bar else _lines(options))
        started: list[Callback] = []

        def report_epoch(epoch: int, latest: dict[str, float]) -> bool:
            nonlocal state
            state = replace(state, iteration=epoch, metrics=dict(latest))
            show(state)
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug("%s", _line(state))
            options.interruption.num_finished = epoch
            wants_to_stop = False
            try:
                for callback in options.callbacks:  # all of them are told
                    wants_to_stop |= callback.on_iteration(state) is True
            except KeyboardInterrupt:
                if not options.interruption.is_caught:
                    raise
                options.interruption.request()
                return True
            return options.interruption.is_requested or wants_to_stop

        try:
            for callback in options.callbacks:
                started.append(callback)
                callback.on_start(state)
            yield report_epoch
        finally:
            for callback in started:
                callback.on_end(state)


@contextmanager
def _lines(options: ReportOptions) -> Iterator[_Show]:
    """A line every few seconds, the first after as long, or after every so many iterations.

    At the end there is one more, if there were others or progress was asked for.
    """
    start = last = time.monotonic()
    latest: TrainingProgress | None = None
    num_lines = 0

    def write(line: str) -> None:
        logger.info("%s", line)
        if options.progress is not False and not (logger.isEnabledFor(logging.INFO) and logger.hasHandlers()):
            print(line, file=sys.stderr, flush=True)

    def show(state: TrainingProgress) -> None:
        nonlocal last, latest, num_lines
        latest, now = state, time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES if options.every is None else state.iteration % options.every == 0:
            last = now
            num_lines += 1
            write(_line(state))

    yield show
    if latest is not None and (num_lines or options.progress or logger.isEnabledFor(logging.INFO)):
        done = f"{_line(latest)}  done in {time.monotonic() - start:.1f} s"
        if num_lines or options.progress:
            write(done)
        else:
            logger.info("%s", done)


def _line(state: TrainingProgress) -> str:
    """
    >>> _line(TrainingProgress(ranker="PGRank", iteration=3, num_iterations=10, metrics={"reward": 0.5}, settings={}))
    'PGRank 3/10  reward 0.5000'
    """
    return f"{state.ranker} {state.iteration}/{state.num_iterations}  {_numbers(state)}".rstrip()


def _numbers(state: TrainingProgress) -> str:
    return "  ".join(f"{name} {number:.4f}" for name, number in state.metrics.items())


@contextmanager
def _bar(state: TrainingProgress) -> Iterator[_Show]:
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
        task = bar.add_task(state.ranker, total=state.num_iterations, numbers="")
        yield lambda state: bar.update(task, completed=state.iteration, numbers=_numbers(state))
