"""What goes where: results to stdout, JSON alone there when asked for; everything said on the way to stderr."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_OF_FILES = 140


def print_json(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def console() -> Console:
    """Where tables are drawn; wide enough not to break them when stdout is a file."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_OF_FILES)


def note(text: str) -> None:
    """A line on stderr about what is going on."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


@contextmanager
def note_if_slow(text: str, *, after_seconds: float = 2.0) -> Iterator[None]:
    """Say this once what happens inside takes longer than a reader would wait without a word."""
    timer = threading.Timer(after_seconds, note, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def check_can_write(path: Path, *, option: str) -> None:
    """Refuse a place that cannot take a file before any work is done for it."""
    if path.is_dir():
        raise RankPolicyError(f"{option} must name a file; {path} is a directory. Name a file in it.")
    if not path.parent.is_dir():
        raise RankPolicyError(f"{option} must be in a directory that exists; {path.parent} does not. Create it first.")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise RankPolicyError(
            f"{option} must be writable; {path} is not. Choose another place or change its permissions."
        )


def made_directory(path: Path, *, option: str) -> Path:
    """The directory, made with its parents where it is missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RankPolicyError(f"{option} must be a directory; {path} cannot be made ({error.strerror}).") from None
    if not os.access(path, os.W_OK):
        raise RankPolicyError(
            f"{option} must be writable; {path} is not. Choose another place or change its permissions."
        )
    return path
