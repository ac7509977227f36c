"""Disks that fail or lose what was not synced, as file systems of SQLite (apsw VFS over the real one)."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

REAL = apsw.vfs_names()[0]
SECTOR = 512  # what a disk writes whole or not at all


@dataclass(frozen=True)
class Operation:
    """A write (bytes at an offset), a sync, a truncation or a deletion of a file."""

    kind: str
    file: str
    offset: int = 0
    content: bytes = b""


class WatchedFile(apsw.VFSFile):
    """Asks before every change of a file; the answer may be an error."""

    def __init__(self, name: Any, flags: list[int], ask: Callable[[Operation], None]) -> None:
        given = name.filename() if isinstance(name, apsw.URIFilename) else (name or "")
        self._name, self._ask = os.path.basename(given), ask
        super().__init__(REAL, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._ask(Operation("write", self._name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._ask(Operation("truncate", self._name, size))
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._ask(Operation("sync", self._name))
        super().xSync(flags)


class WatchedDisk(apsw.VFS):
    """A file system that asks before every change."""

    def __init__(self, name: str, ask: Callable[[Operation], None]) -> None:
        self._ask = ask
        super().__init__(name, REAL)

    def xOpen(self, name: Any, flags: list[int]) -> WatchedFile:  # noqa: N802
        return WatchedFile(name, flags, self._ask)

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802
        self._ask(Operation("delete", os.path.basename(name)))
        super().xDelete(name, sync)

    def excepthook(self, kind: Any, error: Any, trace: Any) -> None:
        """SQLite has been told; there is nobody to raise it to."""


@contextmanager
def watched(ask: Callable[[Operation], None]) -> Iterator[None]:
    """All databases opened inside are on a watched disk."""
    disk = WatchedDisk(f"watched {id(ask)}", ask)
    apsw.set_default_vfs(f"watched {id(ask)}")
    try:
        yield
    finally:
        apsw.set_default_vfs(REAL)
        disk.unregister()


@dataclass
class FailingDisk:
    """Fails from its operation number ``first`` on, ``times`` times.

    Parameters
    ----------
    kind
        "full", "error" (nothing is written) or "torn" (half of it is written, then an error).
    """

    first: int
    times: int
    kind: str
    num_operations: int = 0
    num_failures: int = 0

    def __call__(self, operation: Operation) -> None:
        self.num_operations += 1
        if not self.first <= self.num_operations < self.first + self.times:
            return
        self.num_failures += 1
        if self.kind == "full" and operation.kind == "write":
            raise apsw.FullError("database or disk is full")
        raise apsw.IOError(f"{operation.kind} of {operation.file} failed")


@dataclass
class Recording:
    """All operations of a run, to be cut off anywhere."""

    operations: list[Operation] = field(default_factory=list)

    def __call__(self, operation: Operation) -> None:
        self.operations.append(operation)


@dataclass
class DiskImage:
    """What a disk holds after some operations: what was synced for sure, and changes that were not."""

    synced: dict[str, bytearray] = field(default_factory=dict)
    unsynced: list[Operation] = field(default_factory=list)

    def apply(self, operation: Operation) -> None:
        """One more operation."""
        if operation.kind == "sync":
            # SQLite syncs the folder with the first sync of a new journal, so earlier deletions in it are on disk too.
            syncs_folder = operation.file.endswith(("-journal", "-wal")) and operation.file not in self.synced
            mine = [
                each
                for each in self.unsynced
                if each.file == operation.file or (syncs_folder and each.kind == "delete")
            ]
            self.unsynced = [each for each in self.unsynced if each not in mine]
            for each in mine:
                _change(self.synced, each)
            self.synced.setdefault(operation.file, bytearray())
        else:
            self.unsynced.append(operation)

    def files_after_power_loss(self, rng: random.Random | None) -> dict[str, bytearray]:
        """The files that are found. Of changes that were not synced none survive (no ``rng``), or any, and writes may be torn."""
        files = {name: bytearray(content) for name, content in self.synced.items()}
        for operation in self.unsynced if rng is not None else ():
            assert rng is not None
            if rng.random() < 0.5:
                _change(files, _torn(operation, rng) if rng.random() < 0.3 else operation)
        return files

    def write(self, folder: Path, rng: random.Random | None) -> None:
        """Put the files that are found into a folder."""
        for name, content in self.files_after_power_loss(rng).items():
            (folder / name).write_bytes(content)


def _torn(operation: Operation, rng: random.Random) -> Operation:
    if operation.kind != "write":
        return operation
    kept = rng.randrange(0, len(operation.content) + 1, SECTOR)
    return Operation("write", operation.file, operation.offset, operation.content[:kept])


def _change(files: dict[str, bytearray], operation: Operation) -> None:
    if operation.kind == "delete":
        files.pop(operation.file, None)
        return
    content = files.setdefault(operation.file, bytearray())
    if operation.kind == "truncate":
        del content[operation.offset :]
        return
    end = operation.offset + len(operation.content)
    if operation.content and len(content) < end:
        content.extend(bytes(end - len(content)))
    content[operation.offset : end] = operation.content
