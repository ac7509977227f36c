"""Checkpoints: a thread moves the write-ahead log into the database, so that no answer waits for it."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from rankpolicy.service.log.sqlite.database_file import connect, import_apsw
from rankpolicy.types import RankPolicyError

# Pages in the write-ahead log before they move into the database: the disk is busy with them for a few milliseconds, and with more of
# them for longer.
PAGES_PER_CHECKPOINT = 1_000
_FEW_PAGES = 100  # that were written during a checkpoint: their copying takes about a millisecond
_MOST_ROUNDS = 8  # of one checkpoint


class Checkpoints:
    """Checkpoints of one connection that writes.

    A thread copies what the write-ahead log has, again and again until little is left that was written meanwhile. The writing
    connection copies that itself: only then can the log begin again from its start.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._pages = path, PAGES_PER_CHECKPOINT
        self._wanted = threading.Event()
        self._thread: threading.Thread | None = None
        self._ending = False
        self._is_copying = self._is_copied = False
        self._last, self._next = 0, self._pages
        self._num_logs = 0  # how often the log has begun again
        self.num_copied = 0  # by the thread

    def follow(self, connection: Any) -> None:
        """Watch a connection that writes; it has no automatic checkpoints from now on."""
        self._last = 0
        self._begin_again()
        connection.set_wal_hook(self._committed)

    def start(self) -> None:
        """Start the thread; without it the writing connection copies everything."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rankpolicy checkpoints", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ending = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _committed(self, connection: Any, schema: str, pages: int) -> int:
        if pages < self._last:  # the log has begun again
            self._begin_again()
        self._last = pages
        if self._is_copying or pages < self._next:
            return 0
        if self._thread is None or self._is_copied:
            with suppress(import_apsw().Error):  # the log keeps everything; the next checkpoint comes
                connection.wal_checkpoint(mode=import_apsw().SQLITE_CHECKPOINT_PASSIVE)
            self._is_copied = False
            self._next = pages + self._pages  # where a reader holds the log back, the log grows
        else:
            self._is_copying = True
            self._wanted.set()
        return 0

    def _begin_again(self) -> None:
        self._num_logs += 1  # what the thread copies now is of the log before
        self._next, self._is_copied = self._pages, False

    def _run(self) -> None:
        connection: Any = None
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._ending:
                break
            log = self._num_logs
            # After a failure the writing connection tries it, and its failure counts.
            with suppress(import_apsw().Error, RankPolicyError):
                connection = connect(self._path) if connection is None else connection
                for _ in range(_MOST_ROUNDS):
                    _, done = connection.wal_checkpoint(mode=import_apsw().SQLITE_CHECKPOINT_PASSIVE)
                    if self._last - done <= _FEW_PAGES:
                        break
                self.num_copied += 1
            self._is_copied, self._is_copying = log == self._num_logs, False
        if connection is not None:
            connection.close(force=True)
