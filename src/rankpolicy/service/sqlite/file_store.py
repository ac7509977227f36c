"""The store of the service in one SQLite file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from rankpolicy.service.errors import DamagedStoreError, UnavailableError
from rankpolicy.service.keys import StoredKey
from rankpolicy.service.records import (
    Committed,
    Lesson,
    NewEvents,
    NewRanking,
    PolicyVersion,
    Snapshot,
    StoredRanking,
)
from rankpolicy.service.row_hashes import check_row, row_hash
from rankpolicy.service.sqlite.checking import check_log
from rankpolicy.service.sqlite.opening import FileLock, check_pages, connect, create_tables, import_apsw
from rankpolicy.service.sqlite.schema import LOG
from rankpolicy.service.sqlite.transaction import SHOWN, SqliteTables, read_ranking
from rankpolicy.service.transaction import Transaction

_KEPT_SNAPSHOTS = 2
_LESSONS = """
    SELECT l.seq, l.ranking_seq, l.version, l.stamp, l.clicks, l.row_hash,
           r.seq, r.ranking_id, r.version, r.stamp, r.deadline, r.shown, r.request, r.request_hash, r.row_hash
    FROM lessons l LEFT JOIN rankings r ON r.seq = l.ranking_seq
    WHERE l.version = ? AND l.seq > ? AND l.seq <= ? ORDER BY l.seq
"""


class SqliteStore:
    """Lists, events, lessons, snapshots and keys in one SQLite file (WAL, synchronous FULL).

    One thread uses a store at a time. The server has two on the same file: one that writes, in the thread of the journal, and one that
    only reads.

    Parameters
    ----------
    path
        The file; it is made where there is none.
    role
        ``"server"`` writes and holds the lock that keeps other servers out; ``"keys"`` may write beside a server, and is for keys only;
        ``"reader"`` writes nothing.
    check
        How the file is checked when it is opened: ``"quick"`` (pages), ``"full"`` (pages and indexes) or ``"none"``.
    """

    def __init__(self, path: str | os.PathLike[str], *, role: str = "server", check: str = "quick") -> None:
        self.path = Path(path)
        self._role = role
        self._lock = FileLock(self.path) if role == "server" else None
        self._connection: Any = None
        try:
            self.reopen()
            if check != "none":
                check_pages(self._connection, self.path, thorough=check == "full")
        except BaseException:
            self.close()
            raise

    def reopen(self) -> None:
        """Begin again after a failure: what was committed is read from the disk, not remembered."""
        self._disconnect()
        self._connection = connect(self.path, read_only=self._role == "reader")
        if self._role != "reader":
            with _failures_named(self.path):
                create_tables(self._connection)
        with _failures_named(self.path):
            self._seq = max(self._largest(table, "seq") for table in LOG)

    def close(self) -> None:
        """Release the database."""
        self._disconnect()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def commit(self, work: Sequence[NewRanking | NewEvents], *, now: int) -> Committed:
        """Store the work and end the windows that are due, in one transaction.

        Parameters
        ----------
        work
            Lists and events, in order.
        now
            The time of the service.
        """
        with self._transaction() as connection:
            transaction = Transaction(SqliteTables(connection), work, seq=self._seq, now=now)
            committed = transaction.run()
        self._seq = transaction.seq
        return committed

    def last_stamp(self) -> int:
        """The last time in the log; 0 for an empty one."""
        with _failures_named(self.path):
            return max(self._last_stamp_of(table) for table in ("rankings", "events", "lessons"))

    def last_seq(self) -> int:
        """The last place in the log that is taken."""
        with _failures_named(self.path):
            return max(self._largest(table, "seq") for table in LOG)

    def secret(self) -> bytes:
        """32 random bytes made with the database; random lists are drawn from them and the ranking id."""
        return bytes(self._rows("SELECT value FROM meta WHERE name = 'secret'")[0][0])

    def version_of(self, policy: str, kind: str, settings: str, *, now: int) -> PolicyVersion:
        """The version of a policy with these settings; a new one where they were never served under this name.

        Parameters
        ----------
        policy, kind, settings
            Name, kind and settings as JSON with sorted keys.
        now
            The time of the service.
        """
        known = self.versions()
        mine = [version for version in known if version.policy == policy]
        for version in mine:
            if (version.kind, version.settings) == (kind, settings):
                return version
        new = PolicyVersion(key=len(known) + 1, policy=policy, number=len(mine) + 1, kind=kind, settings=settings)
        columns = (new.key, policy, new.number, kind, settings, now)
        with self._transaction() as connection:
            connection.execute("INSERT INTO policies VALUES (?, ?, ?, ?, ?, ?, ?)", (*columns, row_hash(*columns)))
            connection.execute(
                "INSERT INTO audit (stamp, what, detail) VALUES (?, 'new policy version', ?)",
                (now, f"{policy} {new.number}: {kind} {settings}"),
            )
        return new

    def versions(self) -> list[PolicyVersion]:
        """All versions of all policies."""
        rows = self._rows("SELECT key, policy, number, kind, settings, stamp, row_hash FROM policies ORDER BY key")
        for row in rows:
            check_row("policies", row)
        return [
            PolicyVersion(key=key, policy=policy, number=number, kind=kind, settings=settings)
            for key, policy, number, kind, settings, _, _ in rows
        ]

    def ranking(self, ranking_id: str) -> StoredRanking | None:
        """A shown list; None where there is none with this id.

        Parameters
        ----------
        ranking_id
            Its id.
        """
        with _failures_named(self.path):
            return read_ranking(self._connection, "ranking_id = ?", ranking_id)

    def clicks_of(self, ranking: StoredRanking) -> tuple[bytes, bool]:
        """Clicks on a list (one byte per item) and whether they were learned already; policies that do not learn keep none.

        Parameters
        ----------
        ranking
            The list.
        """
        learned = self._rows("SELECT clicks FROM lessons WHERE ranking_seq = ?", ranking.seq)
        if learned:
            return learned[0][0], True
        open_clicks = self._rows("SELECT clicks FROM pending WHERE ranking_seq = ?", ranking.seq)
        return (open_clicks[0][0] if open_clicks else bytes(len(ranking.shown.items))), False

    def lessons(self, version: int, *, after: int = 0, until: int | None = None) -> Iterator[Lesson]:
        """Lessons of a version in the order of the log; a damaged row is an error.

        Parameters
        ----------
        version
            Key of the version.
        after
            Only lessons with a larger seq.
        until
            Only lessons up to this seq; None: all.
        """
        with _failures_named(self.path):
            for row in self._connection.execute(_LESSONS, (version, after, (1 << 62) if until is None else until)):
                lesson, ranking = row[:6], row[6:]
                check_row("lessons", lesson)
                if ranking[0] is None:
                    raise DamagedStoreError(f"list {lesson[1]} is missing from {self.path}. Restore a backup.")
                check_row("rankings", ranking)
                shown = SHOWN.decode(ranking[5])
                yield Lesson(seq=lesson[0], version=version, query=shown.query, items=shown.items, clicks=lesson[4])

    def save_snapshot(self, snapshot: Snapshot, *, now: int) -> None:
        """Keep a snapshot; older ones but the last are dropped.

        Parameters
        ----------
        snapshot
            The snapshot.
        now
            The time of the service.
        """
        digest = _snapshot_hash(snapshot.version, snapshot.seq, snapshot.state)
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)",
                (snapshot.version, snapshot.seq, now, digest, snapshot.state),
            )
            connection.execute(
                "DELETE FROM snapshots WHERE version = ?1 AND seq NOT IN "
                "(SELECT seq FROM snapshots WHERE version = ?1 ORDER BY seq DESC LIMIT ?2)",
                (snapshot.version, _KEPT_SNAPSHOTS),
            )

    def snapshots(self, version: int) -> list[Snapshot]:
        """Snapshots of a version, the newest first; damaged ones are marked.

        Parameters
        ----------
        version
            Key of the version.
        """
        rows = self._rows("SELECT seq, sha256, state FROM snapshots WHERE version = ? ORDER BY seq DESC", version)
        return [
            Snapshot(version=version, seq=seq, state=state, is_sound=_snapshot_hash(version, seq, state) == digest)
            for seq, digest, state in rows
        ]

    def audit(self, what: str, detail: str, *, now: int) -> None:
        """Write a line into the audit log.

        Parameters
        ----------
        what
            What was done.
        detail
            To what, in words or JSON.
        now
            The time of the service.
        """
        with self._transaction() as connection:
            connection.execute("INSERT INTO audit (stamp, what, detail) VALUES (?, ?, ?)", (now, what, detail))

    def valid_keys(self) -> list[StoredKey]:
        """The keys that are in force."""
        rows = self._rows("SELECT key_id, digest, scopes FROM keys WHERE revoked IS NULL ORDER BY stamp, key_id")
        return [
            StoredKey(key_id=key_id, digest=digest, scopes=tuple(scopes.split())) for key_id, digest, scopes in rows
        ]

    def add_key(self, key: StoredKey, *, now: int) -> None:
        """Put a key in force.

        Parameters
        ----------
        key
            What is stored about it.
        now
            The time.
        """
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO keys VALUES (?, ?, ?, ?, NULL)", (key.key_id, key.digest, " ".join(key.scopes), now)
            )
            detail = f"{key.key_id}: {' '.join(key.scopes)}"
            connection.execute("INSERT INTO audit (stamp, what, detail) VALUES (?, 'new key', ?)", (now, detail))

    def revoke_key(self, key_id: str, *, now: int) -> bool:
        """Put a key out of force; whether there was one with this id.

        Parameters
        ----------
        key_id
            The public part of the key.
        now
            The time.
        """
        with self._transaction() as connection:
            connection.execute("UPDATE keys SET revoked = ? WHERE key_id = ? AND revoked IS NULL", (now, key_id))
            found = bool(connection.changes())
            if found:
                connection.execute(
                    "INSERT INTO audit (stamp, what, detail) VALUES (?, 'key revoked', ?)", (now, key_id)
                )
        return found

    def check(self) -> dict[str, int]:
        """Check all pages, indexes and rows, and every lesson against the events; the number of rows of the log by table."""
        with _failures_named(self.path):
            check_pages(self._connection, self.path, thorough=True)
            return check_log(self._connection)

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with _failures_named(self.path):
            if self._connection is None:
                raise UnavailableError(f"the database {self.path} is closed.")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with _failures_named(self.path):
            return list(self._connection.execute(statement, values).fetchall())

    def _largest(self, table: str, column: str) -> int:
        (found,) = self._connection.execute(f"SELECT max({column}) FROM {table}").fetchone()
        return found or 0

    def _last_stamp_of(self, table: str) -> int:
        row = self._connection.execute(f"SELECT stamp FROM {table} ORDER BY seq DESC LIMIT 1").fetchone()
        return 0 if row is None else int(row[0])

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(import_apsw().Error):  # a disk that fails now: all that counts was synced before
                connection.close(force=True)


def _snapshot_hash(version: int, seq: int, state: bytes) -> bytes:
    return sha256(f"{version} {seq} {len(state)}\n".encode() + state).digest()


@contextmanager
def _failures_named(path: Path) -> Iterator[None]:
    """Failures of SQLite as ours: the file is damaged, or cannot be written at the moment."""
    apsw = import_apsw()
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise DamagedStoreError(f"{path} is damaged ({error}). Restore it from a backup.") from None
    except apsw.FullError:
        raise UnavailableError(
            f"the disk of {path} is full: nothing was stored. Make room and send it again."
        ) from None
    except (apsw.IOError, apsw.BusyError, apsw.LockedError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise UnavailableError(f"{path} cannot be written: nothing was stored ({error}). Send it again.") from None
