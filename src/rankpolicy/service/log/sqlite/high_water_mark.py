"""How far the log had come when something was last acknowledged, in a file next to the database.

SQLite drops damaged or missing transactions at the end of its write-ahead log without a word. The mark is outside the database, so it tells
a log that was lost from one that was never written. It is written after the commit and before the answer: it may lag behind the database,
and never leads. It is not synced: after a power loss it may lag by the half minute for which the operating system holds writes back.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from rankpolicy.service.errors import DamagedStoreError, UnavailableError
from rankpolicy.service.log.sqlite.database_file import new_file

COUNTED = ("entries of the log", "lines of the audit", "changes")
_SLOT = struct.Struct("<Q8s")  # a number and its hash, in one sector of the disk


class HighWaterMark:
    """The largest acknowledged number of each kind in ``COUNTED``."""

    def __init__(self, database: Path) -> None:
        self.path = Path(f"{database}.mark")
        self._database = database
        self._descriptor: int | None = None

    def numbers(self) -> list[int]:
        """What was acknowledged; zeros where there is no mark, such as next to a restored backup."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return [0] * len(COUNTED)
        slots = [content[start : start + _SLOT.size] for start in range(0, len(content), _SLOT.size)]
        numbers = [int.from_bytes(slot[:8], "little") for slot in slots]
        if slots != [_slot(kind, number) for kind, number in zip(range(len(COUNTED)), numbers, strict=False)]:
            raise DamagedStoreError(
                f"{self.path} is damaged. Check the database (rankpolicy service replay), then delete this file: it is made again."
            )
        return numbers

    def check(self, acknowledged: list[int], stored: list[int]) -> None:
        """Refuse a database that has less than was acknowledged."""
        for kind, before, now in zip(COUNTED, acknowledged, stored, strict=True):
            if now < before:
                raise DamagedStoreError(
                    f"{self._database} has {now} {kind}, but {before} were acknowledged: its write-ahead log ({self._database}-wal) is "
                    f"missing, cut or damaged, or an older copy was put in its place. Restore the newest backup; "
                    f"to go on without what was lost, delete {self.path}."
                )

    def begin(self, stored: list[int]) -> None:
        """Be ready to write; a mark is made where there is none."""
        self.close()
        try:
            if not self.path.exists():
                with suppress(FileExistsError), new_file(self.path) as unfinished:
                    unfinished.write_bytes(b"".join(_slot(kind, number) for kind, number in enumerate(stored)))
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise UnavailableError(f"{self.path} cannot be written: {error.strerror or error}.") from None

    def raise_to(self, kind: int, number: int) -> None:
        """Note that something was committed; called before it is acknowledged."""
        if self._descriptor is not None:
            # A full disk has room for bytes that are there already; a broken one fails the next commit.
            with suppress(OSError):
                os.pwrite(self._descriptor, _slot(kind, number), kind * _SLOT.size)

    def close(self) -> None:
        """Release the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _slot(kind: int, number: int) -> bytes:
    return _SLOT.pack(number, blake2b(b"%d %d" % (kind, number), digest_size=8).digest())
