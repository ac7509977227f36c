"""A new file that only its owner can read, whole or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """An empty file to be filled, which gets its name and is on disk at the end; one that came meanwhile is a FileExistsError."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    _drop(unfinished)
    try:
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield unfinished
        _sync(unfinished)
        os.link(unfinished, path)  # unlike a rename, this does not replace a file that came meanwhile
        _sync(path.parent)
    finally:
        _drop(unfinished)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _drop(unfinished: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):  # a database has these
        Path(f"{unfinished}{ending}").unlink(missing_ok=True)
