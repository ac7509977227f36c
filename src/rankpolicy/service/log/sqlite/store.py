"""The store of the service in one SQLite file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from rankpolicy.service.domain.messages import ENCODER
from rankpolicy.service.domain.records import Committed, NewEvents, NewRanking
from rankpolicy.service.errors import DamagedStoreError, UnavailableError
from rankpolicy.service.log.sqlite.checkpoints import Checkpoints
from rankpolicy.service.log.sqlite.database_file import (
    FileLock,
    check_pages,
    connect,
    convert,
    create_database,
    import_apsw,
)
from rankpolicy.service.log.sqlite.high_water_mark import HighWaterMark
from rankpolicy.service.log.store import Store
from rankpolicy.service.log.tables import OpenLists, Tables
from rankpolicy.service.log.transaction import Row, Transaction

_PATIENCE = 8_000  # microseconds for which windows that are due may wait under load
# Every step of a statement lets the other threads of Python run and then waits for its turn, so one step writes many rows.
_ROWS_PER_STEP = (64, 16, 4, 1)


class SqliteTables(Tables):
    """The tables of one file. Lists go into a statement as JSON: SQLite has no arrays."""

    is_in = "IN (SELECT value FROM json_each(?))"
    hashed = ("pending", "parked")

    def _execute(self, statement: str, *values: Any) -> Any:
        return self._connection.execute(statement, values)

    def _list(self, values: Collection[Any]) -> str:
        return ENCODER.encode(list(values)).decode()

    def _insert(self, table: str, rows: Sequence[Row]) -> None:
        self._write(f"INSERT INTO {table} VALUES ", "", rows)

    def _update_clicks(self, rows: Sequence[Row]) -> None:
        self._write(
            "WITH new (seq, deadline, clicks, row_hash) AS (VALUES ",
            ") UPDATE pending SET clicks = new.clicks, row_hash = new.row_hash FROM new WHERE ranking_seq = new.seq",
            rows,
        )

    def _write(self, start: str, end: str, rows: Sequence[Row]) -> None:
        row_marks, done = f"({', '.join('?' * len(rows[0]))})", 0
        for size in _ROWS_PER_STEP:
            statement = start + ", ".join([row_marks] * size) + end
            while len(rows) - done >= size:
                self._connection.execute(statement, tuple(chain.from_iterable(rows[done : done + size])))
                done += size


class SqliteStore(Store):
    """Lists, events, lessons, snapshots and keys in one SQLite file (WAL, synchronous FULL).

    One thread uses a store at a time. The server has two on the same file: one that writes, for the journal, and one that only reads.

    Parameters
    ----------
    path
        The file; the roles ``"server"`` and ``"keys"`` make it where there is none.
    role
        ``"server"`` writes and holds the lock that keeps other servers out; ``"writer"`` writes for a server that holds it; ``"keys"``
        may write while a server runs, and is for keys and changes; ``"reader"`` writes nothing.
    check
        How the file is checked when it is opened: ``"quick"`` (pages), ``"full"`` (pages and indexes) or ``"none"``.
    """

    hashed = (*Store.hashed, "meta", "audit", "keys", "pending", "parked")

    def __init__(self, path: str | os.PathLike[str], *, role: str = "server", check: str = "quick") -> None:
        self._sync_seconds = 0.0  # of the last commit
        self.path = Path(path)
        self.name = str(path)
        self._role = role
        self._lock = FileLock(self.path) if role == "server" else None
        self._connection: Any = None
        self._open_lists = OpenLists()
        self._checkpoints = Checkpoints(self.path)
        self._mark = HighWaterMark(self.path)
        self._inode: tuple[int, int] | None = None  # of the file that was opened first
        self._log_inode: tuple[int, int] | None = None  # of its write-ahead log, the same while it is connected
        try:
            if role in ("server", "keys"):
                create_database(self.path)
            if role == "server":
                # It loads numpy, which the writer process does not need.
                from rankpolicy.service.log.sqlite.wal_frames import check_frames

                check_frames(self.path)
                with _failures_named(self.path):
                    convert(self.path)
            self.reopen()
            if check != "none":
                check_pages(self._connection, self.path, thorough=check == "full")
        except BaseException:
            self.close()
            raise

    def reopen(self) -> None:
        """Begin again after a failure: what was committed is read from the disk, not remembered."""
        self._disconnect()
        self._open_lists.clear()
        self._check_inode()
        acknowledged = self._mark.numbers()  # before the database is read, which another process may be writing
        self._connection = connect(self.path, read_only=self._role == "reader")
        self._inode = self._inode or _inode_of(self.path)
        if self._role != "reader":
            self._checkpoints.follow(self._connection)
        self._seq = self.last_seq()
        stored = [self._seq, self._last_audit(), self.last_change()]
        self._mark.check(acknowledged, stored)
        if self._role != "reader":
            self._log_inode = _inode_of(Path(f"{self.path}-wal"))
            self._mark.begin(stored)

    def close(self) -> None:
        """Release the database."""
        self._checkpoints.stop()
        self._disconnect()
        self._mark.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def check_beside(self, kind: str) -> Callable[[], None]:
        """Begin to check the pages in a thread; the function waits for the end, and raises where one is damaged.

        Parameters
        ----------
        kind
            ``"quick"`` (pages), ``"full"`` (pages and indexes) or ``"none"``.
        """
        if kind == "none":
            return lambda: None
        thread = ThreadPoolExecutor(1, "rankpolicy check")
        checking = thread.submit(_check_pages_of, self.path, thorough=kind == "full")
        thread.shutdown(wait=False)  # it ends with its work
        return checking.result

    @property
    def locks(self) -> tuple[int, ...]:
        """Open files that keep other servers out."""
        return () if self._lock is None else (self._lock.descriptor,)

    def begin_to_serve(self) -> None:
        """Move the write-ahead log into the database in a thread, so that commits need not."""
        self._checkpoints.start()

    def commit(self, work: Sequence[NewRanking | NewEvents], *, now: int, urgent: bool = False) -> Committed:
        """Store the work and end the windows that are due, in one transaction.

        Parameters
        ----------
        work
            Lists and events, in order.
        now
            The time of the service.
        urgent
            Whether users wait for it: then fewer windows end in one transaction, and not in every one.
        """
        try:
            with self._committing() as connection:
                tables = SqliteTables(connection, self._open_lists, patience=_PATIENCE if urgent else 0)
                transaction = Transaction(tables, work, seq=self._seq, now=now, urgent=urgent)
                committed = transaction.run()
        except BaseException:
            self._open_lists.clear()
            raise
        self._seq = transaction.seq
        self._mark.raise_to(0, self._seq)  # before the answer: from then on a log that is shorter has lost something
        self._open_lists.follow(transaction.opened, transaction.clicks, transaction.closed, committed.next_deadline)
        return msgspec.structs.replace(committed, sync_seconds=self._sync_seconds)

    def check(self) -> dict[str, int]:
        """Check all pages, indexes and rows, and every lesson against the events; the number of rows of the log by table."""
        with _failures_named(self.path):
            check_pages(self._connection, self.path, thorough=True)
            return super().check()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with self._committing() as connection:
            yield connection
        self._mark.raise_to(1, self._last_audit())
        self._mark.raise_to(2, self.last_change())

    @contextmanager
    def _committing(self) -> Iterator[Any]:
        with _failures_named(self.path):
            self._connected().execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                start = time.perf_counter()
                self._connection.execute("COMMIT")
                self._sync_seconds = time.perf_counter() - start
                self._check_inode()  # after the commit: then it is in the file that the next start will open
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _check_inode(self) -> None:
        """Refuse to go on with a database, or a write-ahead log, that was deleted or replaced; put back it is used again."""
        files = {self.path: self._inode} | (
            {} if self._connection is None else {Path(f"{self.path}-wal"): self._log_inode}
        )
        for path, inode in files.items():
            if inode is not None and _inode_of(path) != inode:
                raise UnavailableError(
                    f"{path} was deleted or replaced while the service ran: nothing is stored. Stop the service and restore a backup."
                )

    def _add_audit_line(self, connection: Any, what: str, detail: str, *, now: int) -> None:
        self.insert(connection, "audit", (self._last_audit() + 1, now, what, detail))

    def _last_audit(self) -> int:
        return int(self.rows("SELECT coalesce(max(number), 0) FROM audit")[0][0])

    def _connected(self) -> Any:
        if self._connection is None:
            raise UnavailableError(f"the database {self.path} is closed.")
        return self._connection

    @contextmanager
    def _moment(self) -> Iterator[None]:
        with _failures_named(self.path):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                if self._connection is not None and self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def _each(self, statement: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        yield from self._connection.execute(statement, values)

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        if self._role == "reader":
            self._check_inode()
        with _failures_named(self.path):
            return list(self._connection.execute(statement, values).fetchall())

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(import_apsw().Error):  # a disk that fails now: all that counts was synced before
                connection.close(force=True)


def _inode_of(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _check_pages_of(path: Path, *, thorough: bool) -> None:
    connection = connect(path, read_only=True)
    try:
        with _failures_named(path):
            check_pages(connection, path, thorough=thorough)
    finally:
        connection.close(force=True)


@contextmanager
def _failures_named(path: Path) -> Iterator[None]:
    """Failures of SQLite as ours: the file is damaged, or cannot be written at the moment."""
    apsw = import_apsw()
    try:
        yield
    # Names of tables and columns, and texts, are damaged too where SQL or UTF-8 fails.
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, UnicodeDecodeError) as error:
        raise DamagedStoreError(f"{path} is damaged ({error}). Restore it from a backup.") from None
    except apsw.FullError:
        raise UnavailableError(
            f"the disk of {path} is full: nothing was stored. Make room and send it again."
        ) from None
    except (apsw.IOError, apsw.BusyError, apsw.LockedError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise UnavailableError(f"{path} cannot be written: nothing was stored ({error}). Send it again.") from None
