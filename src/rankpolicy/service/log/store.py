"""A store. The log in it is the truth; everything else can be computed again from it.

All databases have the same tables and statements, with ``?`` where a value stands; lists and events are stored by ``transaction.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any

from rankpolicy.service.domain.keys import StoredKey, key_with_terms
from rankpolicy.service.domain.records import (
    Committed,
    Lesson,
    NewEvents,
    NewRanking,
    PolicyVersion,
    Snapshot,
    StoredRanking,
)
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.log.row_hashes import check_row, row_hash
from rankpolicy.service.log.transaction import RANKING_COLUMNS, SHOWN, ranking_of

LOG = ("rankings", "events", "attachments", "lessons")

_KEPT_SNAPSHOTS = 2
_LESSONS_AT_ONCE = 2_000
_LESSONS = """
    SELECT l.seq, l.ranking_seq, l.version, l.stamp, l.clicks, l.row_hash,
           r.seq, r.ranking_id, r.version, r.stamp, r.deadline, r.shown, r.request, r.request_hash, r.row_hash
    FROM lessons l LEFT JOIN rankings r ON r.seq = l.ranking_seq
    WHERE l.version = ? AND l.seq > ? AND l.seq <= ? ORDER BY l.seq LIMIT ?
"""


class Store(ABC):
    """Keeps shown lists, events and lessons in the order in which they were committed.

    One thread at a time uses a store. ``commit`` is one transaction: lists, events, the check for duplicates and what follows for open
    windows are on disk together when it returns, or not at all when it raises ``UnavailableError``.
    """

    name: str  # of the database, for errors; without passwords
    hashed: Collection[str] = ("policies", "changes", "anchors")  # tables beside the log whose rows carry a hash

    @abstractmethod
    def _rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows that a statement gives."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Any]:
        """A transaction, on disk when it ends; what it gives has ``execute(statement, values)``."""

    @abstractmethod
    def _add_audit_line(self, connection: Any, what: str, detail: str, *, now: int) -> None:
        """Write a line into the audit log, in a transaction."""

    @abstractmethod
    def commit(self, work: Sequence[NewRanking | NewEvents], *, now: int, soon: bool = False) -> Committed:
        """Store the work and end the windows that are due.

        Parameters
        ----------
        work
            Lists and events, in order.
        now
            The time of the service.
        soon
            Whether users wait for it: then fewer windows end in one transaction, and not in every one.
        """

    @abstractmethod
    def reopen(self) -> None:
        """Begin again after a failure: what was committed is read from the disk, not remembered."""

    def check_beside(self, kind: str) -> Callable[[], None]:
        """Begin to check the database beside what follows; the function waits for the end, and raises where something is damaged.

        Parameters
        ----------
        kind
            ``"quick"``, ``"full"`` or ``"none"``, as far as a store has a check of its own.
        """
        return lambda: None

    @property
    def locks(self) -> tuple[int, ...]:
        """Open files that keep other servers out, where there are any."""
        return ()

    def begin_to_serve(self) -> None:
        """Called once before many commits follow each other; a store that does nothing beside them has nothing to do."""
        return

    @abstractmethod
    def close(self) -> None:
        """Release the database."""

    @abstractmethod
    def _moment(self) -> AbstractContextManager[None]:
        """A time in which all reads see the log of one moment."""

    @abstractmethod
    def _each(self, statement: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        """The rows that a statement gives, not all in memory at once; to be read within ``_moment``."""

    def last_stamp(self) -> int:
        """The last time in the log; 0 for an empty one."""
        return max(self._last_stamp_of(table) for table in ("rankings", "events", "lessons"))

    def last_seq(self) -> int:
        """The last place in the log that is taken."""
        return max(self._largest_seq(table) for table in LOG)

    def secret(self) -> bytes:
        """32 random bytes made with the database; random lists are drawn from them and the ranking id."""
        secrets = [bytes(row[1]) for row in self._checked_rows("meta") if row[0] == "secret"]
        if not secrets:
            raise DamagedStoreError(f"the secret is missing from {self.name}. Restore a backup.")
        return secrets[0]

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
        with self._transaction() as connection:
            self._insert(connection, "policies", (new.key, policy, new.number, kind, settings, now))
            detail = f"{policy} {new.number}: {kind} {settings}"
            self._add_audit_line(connection, "new policy version", detail, now=now)
        return new

    def versions(self) -> list[PolicyVersion]:
        """All versions of all policies."""
        return [
            PolicyVersion(key=key, policy=policy, number=number, kind=kind, settings=settings)
            for key, policy, number, kind, settings, *_ in self._checked_rows("policies", "ORDER BY key")
        ]

    def ranking(self, ranking_id: str) -> StoredRanking | None:
        """A shown list; None where there is none with this id.

        Parameters
        ----------
        ranking_id
            Its id.
        """
        rows = self._rows(f"SELECT {RANKING_COLUMNS} FROM rankings WHERE ranking_id = ?", ranking_id)
        return ranking_of(rows[0]) if rows else None

    def clicks_of(self, ranking: StoredRanking) -> tuple[bytes, bool]:
        """Clicks on a list (one byte per item) and whether they were learned already; policies that do not learn keep none.

        Parameters
        ----------
        ranking
            The list.
        """
        learned = self._checked_rows("lessons", "WHERE ranking_seq = ?", ranking.seq)
        if learned:
            return learned[0][4], True
        open_lists = self._checked_rows("pending", "WHERE ranking_seq = ?", ranking.seq)
        return (open_lists[0][2] if open_lists else bytes(len(ranking.shown.items))), False

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
        last = (1 << 62) if until is None else until
        while rows := self._rows(_LESSONS, version, after, last, _LESSONS_AT_ONCE):
            for row in rows:
                yield self._lesson_of(row)
            after = rows[-1][0]

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
                "DELETE FROM snapshots WHERE version = ? AND seq = ?",
                (snapshot.version, snapshot.seq),
            )
            connection.execute(
                "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?)",
                (snapshot.version, snapshot.seq, now, digest, snapshot.state),
            )
            connection.execute(
                "DELETE FROM snapshots WHERE version = ? AND seq NOT IN "
                "(SELECT seq FROM snapshots WHERE version = ? ORDER BY seq DESC LIMIT ?)",
                (snapshot.version, snapshot.version, _KEPT_SNAPSHOTS),
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

    def valid_keys(self) -> list[StoredKey]:
        """The keys that are not revoked; those that have expired are among them, so that a service with keys stays closed."""
        # All rows are read and checked: damage must not revoke a key without a word.
        rows = self._checked_rows("keys", "ORDER BY stamp, key_id")
        return [key_with_terms(*terms) for *terms, _, revoked in (row[:5] for row in rows) if revoked is None]

    def had_keys(self) -> bool:
        """Whether a key was ever made; revoked ones count."""
        return bool(self._rows("SELECT 1 FROM keys LIMIT 1"))

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
            self._insert(connection, "keys", (key.key_id, key.digest, key.terms, now, None))
            self._add_audit_line(connection, "new key", f"{key.key_id}: {key.terms}", now=now)

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
            rows = self._checked_rows("keys", "WHERE key_id = ? AND revoked IS NULL", key_id)
            for row in rows:
                connection.execute("DELETE FROM keys WHERE key_id = ?", (key_id,))
                self._insert(connection, "keys", (*row[:4], now))
                self._add_audit_line(connection, "key revoked", key_id, now=now)
        return bool(rows)

    def _insert(self, connection: Any, table: str, columns: tuple[Any, ...]) -> None:
        """Write a row, with its hash where the table has hashes."""
        values = (*columns, row_hash(*columns)) if table in self.hashed else columns
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)

    def _checked_rows(self, table: str, clauses: str = "", *values: Any) -> list[tuple[Any, ...]]:
        """Rows of a table with all their columns; a damaged one is an error where the table has hashes."""
        rows = self._rows(f"SELECT * FROM {table} {clauses}", *values)
        if table in LOG or table in self.hashed:
            for row in rows:
                check_row(table, row)
        return rows

    def _lesson_of(self, row: tuple[Any, ...]) -> Lesson:
        lesson, ranking = row[:6], row[6:]
        check_row("lessons", lesson)
        if ranking[0] is None:
            raise DamagedStoreError(f"list {lesson[1]} is missing from {self.name}. Restore a backup.")
        check_row("rankings", ranking)
        shown = SHOWN.decode(ranking[5])
        return Lesson(
            seq=lesson[0], version=lesson[2], query=shown.query, items=shown.items, clicks=lesson[4], memo=shown.memo
        )

    def _largest_seq(self, table: str) -> int:
        return int(self._rows(f"SELECT max(seq) FROM {table}")[0][0] or 0)

    def _last_stamp_of(self, table: str) -> int:
        rows = self._rows(f"SELECT stamp FROM {table} ORDER BY seq DESC LIMIT 1")
        return int(rows[0][0]) if rows else 0


def _snapshot_hash(version: int, seq: int, state: bytes) -> bytes:
    return sha256(f"{version} {seq} {len(state)}\n".encode() + state).digest()
