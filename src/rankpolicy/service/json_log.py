"""What a service says on stderr: one JSON object per line, libraries included."""

from __future__ import annotations

import json
import logging
import queue
import sys
import threading
import time
import traceback
import warnings
from contextlib import suppress
from types import TracebackType
from typing import Any

_MOST_WAITING = 10_000  # lines of the access log; more are left out and counted


def log_line(text: str, **fields: Any) -> None:
    """Write a structured line on stderr; keys and bodies of requests never get here."""
    _write(_line({"event": text} | fields))


def log_everything_as_json() -> None:
    """From now on warnings, loggers such as uvicorn's, and tracebacks of this process are lines of JSON too."""
    root = logging.getLogger()
    root.handlers[:] = [_JsonHandler()]
    warnings.showwarning = _log_warning  # type: ignore[assignment]
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda failed: _log_uncaught(failed.exc_type, failed.exc_value, failed.exc_traceback)
    sys.unraisablehook = lambda failed: _log_uncaught(failed.exc_type, failed.exc_value, failed.exc_traceback)


class AccessLog:
    """Lines about requests, written by a thread: the event loop never waits for their reader."""

    def __init__(self, share: float) -> None:
        self._every = 1 / share
        self._due = 0.0
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._left_out = 0
        self._thread = threading.Thread(target=self._run, name="rankpolicy access log", daemon=True)
        self._thread.start()

    def wants_next(self) -> bool:
        """Whether the next request gets a line: every 1 / share-th does."""
        self._due += 1
        if self._due < self._every:
            return False
        self._due -= self._every
        return True

    def add(self, fields: dict[str, Any]) -> None:
        """Have a line written; where too many wait it is left out, and the next one says how many were."""
        if self._lines.qsize() >= _MOST_WAITING:
            self._left_out += 1
            return
        if self._left_out:
            fields["left_out"], self._left_out = self._left_out, 0
        self._lines.put(fields)

    def stop(self) -> None:
        """Write what waits."""
        self._lines.put(None)
        self._thread.join(5.0)

    def _run(self) -> None:
        is_running = True
        while is_running:
            waiting = [self._lines.get()]
            with suppress(queue.Empty):
                while True:  # all that wait in one write: each is a system call, and a turn of this thread
                    waiting.append(self._lines.get_nowait())
            is_running = None not in waiting
            _write("".join(_line({"event": "request"} | fields) for fields in waiting if fields is not None))


class _JsonHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"level": record.levelname.lower(), "logger": record.name}
        if record.exc_info:
            fields["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        try:
            text = record.getMessage()
        except Exception:  # arguments that do not fit the message of a library
            text = str(record.msg)
        log_line(text, **fields)


def _log_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, *details: Any) -> None:
    log_line(" ".join(str(message).split()), level="warning", category=category.__name__)


def _log_uncaught(kind: type[BaseException], error: BaseException | None, path: TracebackType | None) -> None:
    text = "".join(traceback.format_exception(kind, error, path))
    log_line(f"{kind.__name__}: {error}", level="error", traceback=text)


def _line(fields: dict[str, Any]) -> str:
    stamp = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    return json.dumps(stamp | fields, default=str) + "\n"


def _write(line: str) -> None:
    with suppress(OSError, ValueError):  # a closed stderr must not keep requests from being answered
        sys.stderr.write(line)
        sys.stderr.flush()
