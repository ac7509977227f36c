"""Where output goes: results to stdout (only JSON there with ``--json``), messages to stderr, files to checked places."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.types import RankPolicyError
from rankpolicy.writing import checked_target, is_special

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_OF_FILES = 140


def print_json(document: dict[str, Any]) -> None:
    """Print a document on stdout."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def console() -> Console:
    """The console that tables are drawn on; wide when stdout is a file, so that rows are not broken."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_OF_FILES)


def note(text: str) -> None:
    """Print a line on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


@contextmanager
def note_if_slow(text: str, *, after_seconds: float = 2.0) -> Iterator[None]:
    """Print a line on stderr when the block takes longer than this."""
    timer = threading.Timer(after_seconds, note, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def check_can_write(path: Path, *, option: str, inputs: Mapping[str, Path | None] | None = None) -> None:
    """Refuse, before any work is done, a path that cannot be written or that is one of the inputs.

    Parameters
    ----------
    path
        The file to write.
    option
        The option that names it, for error messages.
    inputs
        The files that are read, by the option that names each.
    """
    if path.is_dir():
        raise RankPolicyError(f"{option} must name a file; {path} is a directory. Name a file in it.")
    if path.parent != path and not path.parent.is_dir():
        raise RankPolicyError(f"{option} must be in a directory that exists; {path.parent} does not. Create it first.")
    try:
        checked_target(path)
    except RankPolicyError as error:
        raise RankPolicyError(f"{option}: {error}") from None
    place = path if is_special(path) else path.resolve().parent
    if not os.access(place, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise RankPolicyError(
            f"{option} must be writable; {path} is not. Choose another place or change its permissions."
        )
    for name, read in (inputs or {}).items():
        if read is not None and _is_same_file(path, read):
            raise RankPolicyError(
                f"{option} must not be a file that is read; {path} is {name}, and would be replaced. Name another file."
            )


def _is_same_file(first: Path, second: Path) -> bool:
    """Whether two paths name one file, also through links; devices and pipes may be read and written."""
    if first.resolve() == second.resolve():
        return not is_special(first)
    return first.is_file() and second.is_file() and first.samefile(second)


def made_directory(path: Path, *, option: str) -> Path:
    """The directory, created with its parents where it is missing."""
    if path.is_file():
        raise RankPolicyError(f"{option} must be a directory; {path} is a file. Name another place.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RankPolicyError(f"{option} must be a directory; {path} cannot be created ({error.strerror}).") from None
    if not os.access(path, os.W_OK):
        raise RankPolicyError(
            f"{option} must be writable; {path} is not. Choose another place or change its permissions."
        )
    return path
