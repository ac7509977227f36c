"""Ctrl-C during training: the first one ends it after the present iteration, so that what was learned is kept; a second one aborts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Whether a caller of this code decides what Ctrl-C does: a fit of which this one is a part, or a run of many fits.
_is_left_to_caller: ContextVar[bool] = ContextVar("_is_left_to_caller", default=False)


class Interruption:
    """Whether Ctrl-C was pressed in a fit, and whether it had finished an iteration by then."""

    def __init__(self) -> None:
        self.num_finished = 0  # iterations
        self.is_requested = False
        self.is_caught = False  # whether the fit takes Ctrl-C, rather than its caller

    def request(self) -> None:
        """Ask training to stop; raise KeyboardInterrupt where nothing is finished that could be kept, or where it was asked before."""
        if self.is_requested or self.num_finished == 0:
            raise KeyboardInterrupt
        self.is_requested = True

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Take Ctrl-C in this block, unless a caller does, or the program has a handler of its own; signals reach the main thread only."""
        if _is_left_to_caller.get() or threading.current_thread() is not threading.main_thread():
            yield
            return
        self.is_caught = True
        takes_signal = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if takes_signal:
            signal.signal(signal.SIGINT, lambda number, frame: self.request())
        try:
            with interruption_left_to_caller():
                yield
        finally:
            if takes_signal:
                signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def interruption_left_to_caller() -> Iterator[None]:
    """Ctrl-C ends everything in this block, as KeyboardInterrupt, not only the fit that happens to be running."""
    token = _is_left_to_caller.set(True)
    try:
        yield
    finally:
        _is_left_to_caller.reset(token)
