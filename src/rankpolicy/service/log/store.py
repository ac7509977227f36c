"""A store. The log in it is the truth; everything else can be computed again from it.

All databases have the same tables and statements, with ``?`` where a value stands; lists and events are stored by ``transaction.py``.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from typing import Any

import msgspec

from rankpolicy.service.domain.deployments import Action, Change, after_change, deployments
from rankpolicy.service.domain.keys import StoredKey, key_with_terms
from rankpolicy.service.domain.marks import LEARNED, fresh_marks, mark
from rankpolicy.service.domain.messages import ENCODER, NewEvent
from rankpolicy.service.domain.records import (
    Committed,
    Lesson,
    LoggedEvent,
    LoggedList,
    NewEvents,
    NewRanking,
    PolicyVersion,
    ShownList,
    Snapshot,
    StoredRanking,
)
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.log.transaction import EVENT, LOG, RANKING_COLUMNS, SHOWN, check_row, ranking_of, row_hash
from rankpolicy.types import RankPolicyError

_KEPT_SNAPSHOTS = 2  # where the newest is damaged, the one before it saves most of the lessons
_LESSONS_AT_ONCE = 2_000  # in memory: a start after the loss of all snapshots reads millions
LESSONS = """
    SELECT l.seq, l.ranking_seq, l.version, l.stamp, l.clicks, l.row_hash,
           r.seq, r.ranking_id, r.version, r.stamp, r.deadline, r.shown, r.request, r.request_hash, r.row_hash
    FROM lessons l LEFT JOIN rankings r ON r.seq = l.ranking_seq WHERE l.seq > ?
"""
_LESSONS = f"{LESSONS} AND l.version = ? AND l.seq <= ? ORDER BY l.seq LIMIT ?"
_CHANGE = msgspec.json.Decoder(Change)
_LISTS = """
    SELECT seq, ranking_id, version, stamp, deadline, shown, request, request_hash, row_hash FROM rankings
    WHERE stamp >= ? AND stamp < ? ORDER BY seq
"""
_EVENTS = """
    SELECT a.ranking_seq, e.seq, e.event_id, e.stamp, 'accepted', a.position, e.body, e.row_hash, e.fate, e.ranking_seq, e.position
    FROM attachments a JOIN events e ON e.seq = a.event_seq JOIN rankings r ON r.seq = a.ranking_seq
    WHERE r.stamp >= ? AND r.stamp < ?
    UNION ALL
    SELECT e.ranking_seq, e.seq, e.event_id, e.stamp, e.fate, e.position, e.body, e.row_hash, e.fate, e.ranking_seq, e.position
    FROM events e JOIN rankings r ON r.seq = e.ranking_seq WHERE r.stamp >= ? AND r.stamp < ?
    ORDER BY 1, 2
"""
_ATTACHED = "SELECT a.ranking_seq, a.position, a.seq, e.body FROM attachments a JOIN events e ON e.seq = a.event_seq"
_ACCEPTED = "SELECT ranking_seq, position, seq, body FROM events WHERE fate = 'accepted'"
_LEARNED = "SELECT l.seq, l.ranking_seq, l.clicks, r.shown FROM lessons l JOIN rankings r ON r.seq = l.ranking_seq"
_BLOCK = "WHERE {0} > ? AND {0} <= ? ORDER BY {0} LIMIT ?"
_LONG_TABLES = dict.fromkeys(LOG, "seq") | {"pending": "ranking_seq", "parked": "event_seq"}  # with their keys
_ROWS_PER_BLOCK = 100  # checked in about a millisecond, for which a request may have to wait
_LAST = 1 << 62


class Store(ABC):
    """Keeps shown lists, events and lessons in the order in which they were committed.

    One thread at a time uses a store. ``commit`` is one transaction: lists, events, the check for duplicates and what follows for open
    windows are on disk together when it returns, or not at all when it raises ``UnavailableError``.
    """

    name: str  # of the database, for errors; without passwords
    hashed: Collection[str] = ("policies", "changes", "anchors")  # tables outside the log whose rows carry a hash

    @abstractmethod
    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows that a statement gives.

        Parameters
        ----------
        statement
            SQL with ``?`` where a value stands.
        values
            The values.
        """

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """A transaction, on disk when it ends; what it gives has ``execute(statement, values)``."""

    @abstractmethod
    def _add_audit_line(self, connection: Any, what: str, detail: str, *, now: int) -> None:
        """Write a line into the audit log, in a transaction."""

    @abstractmethod
    def commit(self, work: Sequence[NewRanking | NewEvents], *, now: int, urgent: bool = False) -> Committed:
        """Store the work and end the windows that are due.

        Parameters
        ----------
        work
            Lists and events, in order.
        now
            The time of the service.
        urgent
            Whether users wait for it: then fewer windows end in one transaction, and not in every one.
        """

    @abstractmethod
    def reopen(self) -> None:
        """Begin again after a failure: what was committed is read from the disk, not remembered."""

    def check_beside(self, kind: str) -> Callable[[], None]:
        """Begin to check the database in the background; the returned function waits for the end, and raises where something is damaged.

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
        """Called once before many commits follow each other; a store without background work has nothing to do."""
        return

    def check(self) -> dict[str, int]:
        """Check every row, and every lesson against the events; the number of rows of the log by table."""
        with self._moment():
            counts = dict.fromkeys(LOG, 0)
            for table, number in self.checked_blocks():
                if table in LOG:
                    counts[table] += number
            self._check_lessons()
        return counts

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
        versions = self.versions()
        versions_of_policy = [version for version in versions if version.policy == policy]
        for version in versions_of_policy:
            if (version.kind, version.settings) == (kind, settings):
                return version
        new = PolicyVersion(
            key=len(versions) + 1, policy=policy, number=len(versions_of_policy) + 1, kind=kind, settings=settings
        )
        with self.transaction() as connection:
            self.insert(connection, "policies", (new.key, policy, new.number, kind, settings, now))
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
        rows = self.rows(f"SELECT {RANKING_COLUMNS} FROM rankings WHERE ranking_id = ?", ranking_id)
        return ranking_of(rows[0]) if rows else None

    def clicks_of(self, ranking: StoredRanking) -> tuple[bytes, bool]:
        """Clicks on a list or its rewards (``domain/marks.py``), and whether they were learned already; other policies keep none.

        Parameters
        ----------
        ranking
            The list.
        """
        learned = self._checked_rows("lessons", "WHERE ranking_seq = ?", ranking.seq)
        if learned:
            return learned[0][4], True
        open_lists = self._checked_rows("pending", "WHERE ranking_seq = ?", ranking.seq)
        return (open_lists[0][2] if open_lists else bytes(fresh_marks(ranking.shown))), False

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
        last = _LAST if until is None else until
        while rows := self.rows(_LESSONS, after, version, last, _LESSONS_AT_ONCE):
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
        with self.transaction() as connection:
            connection.execute("DELETE FROM snapshots WHERE version = ? AND seq = ?", (snapshot.version, snapshot.seq))
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
        rows = self.rows("SELECT seq, sha256, state FROM snapshots WHERE version = ? ORDER BY seq DESC", version)
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
        return bool(self.rows("SELECT 1 FROM keys LIMIT 1"))

    def add_key(self, key: StoredKey, *, now: int) -> None:
        """Put a key in force.

        Parameters
        ----------
        key
            What is stored about it.
        now
            The time.
        """
        with self.transaction() as connection:
            self.insert(connection, "keys", (key.key_id, key.digest, key.terms, now, None))
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
        with self.transaction() as connection:
            rows = self._checked_rows("keys", "WHERE key_id = ? AND revoked IS NULL", key_id)
            for row in rows:
                connection.execute("DELETE FROM keys WHERE key_id = ?", (key_id,))
                self.insert(connection, "keys", (*row[:4], now))
                self._add_audit_line(connection, "key revoked", key_id, now=now)
        return bool(rows)

    def changes(self) -> list[Change]:
        """All changes, in order."""
        rows = self._checked_rows("changes", "ORDER BY number")
        for index, row in enumerate(rows):
            if row[0] != index + 1:
                raise DamagedStoreError(f"change {index + 1} is missing. Restore the database from a backup.")
        return [_CHANGE.decode(body) for _, _, body, _ in rows]

    def last_change(self) -> int:
        """The number of the last change; 0 for none."""
        return int(self.rows("SELECT coalesce(max(number), 0) FROM changes")[0][0])

    def add_change(
        self,
        author: str,
        action: Action,
        policy: str,
        *,
        version: int | None = None,
        share: float = 1.0,
        detail: str = "",
        now: int,
        connection: Any = None,
    ) -> Change:
        """Make a change, in the transaction of ``connection`` or its own; one that cannot be made is an error, and nothing is stored.

        Parameters
        ----------
        author, action, policy, version, share, detail
            As ``Change`` has them; a rollback finds the version itself.
        now
            The time of the service.
        connection
            What ``transaction`` gave; None makes a transaction.
        """
        with nullcontext(connection) if connection is not None else self.transaction() as connection:
            changes = self.changes()
            stamp = max([now, *(earlier.stamp for earlier in changes[-1:])])
            change = Change(
                number=len(changes) + 1,
                stamp=stamp,
                author=author,
                action=action,
                policy=policy,
                version=version,
                share=share,
                detail=detail,
            )
            after = after_change(deployments(changes), change)
            if action == "rollback":
                change = msgspec.structs.replace(change, version=after[policy].stable[-1])
            self.insert(connection, "changes", (change.number, stamp, ENCODER.encode(change)))
            return change

    def save_model(self, content: bytes, *, now: int) -> str:
        """Keep the file of a model under its SHA-256, which is returned.

        Parameters
        ----------
        content
            The file.
        now
            The time of the service.
        """
        digest = hashlib.sha256(content).hexdigest()
        with self.transaction() as connection:
            if not self.rows("SELECT 1 FROM models WHERE sha256 = ?", digest):
                connection.execute("INSERT INTO models VALUES (?, ?, ?)", (digest, now, content))
        return digest

    def model(self, sha256: str) -> bytes | None:
        """The file of a model; None where there is none with this hash.

        Parameters
        ----------
        sha256
            The hash, in hexadecimal digits.
        """
        rows = self.rows("SELECT content FROM models WHERE sha256 = ?", sha256)
        if rows and hashlib.sha256(rows[0][0]).hexdigest() != sha256:
            raise DamagedStoreError(f"the model {sha256} is damaged. Restore the database from a backup.")
        return bytes(rows[0][0]) if rows else None

    def logged(self, *, since: int = 0, until: int | None = None, version: int | None = None) -> Iterator[LoggedList]:
        """Lists with their events, in the order of the log; a damaged row is an error.

        Parameters
        ----------
        since
            Only lists stored at this time or later, in microseconds since 1970.
        until
            Only lists stored before; None: all.
        version
            Only those of the version with this key; None: all.
        """
        span = (since, _LAST if until is None else until)
        with self._moment():
            events = iter(self._each(_EVENTS, *span, *span))
            ahead = next(events, None)
            for row in self._each(_LISTS, *span):
                check_row("rankings", row)
                seq, _, key, stamp, deadline, shown, request, _, _ = row
                list_events = []
                while ahead is not None and ahead[0] == seq:
                    list_events.append(_logged_event(ahead))
                    ahead = next(events, None)
                if version is None or version == key:
                    yield LoggedList(
                        seq=seq,
                        version=key,
                        stamp=stamp,
                        deadline=deadline,
                        shown=SHOWN.decode(shown),
                        request=request,
                        events=list_events,
                    )

    def anchor(self, version: int) -> Snapshot | None:
        """The state after the last deleted lesson; None where nothing was deleted. A damaged one is an error.

        Parameters
        ----------
        version
            Key of the version.
        """
        rows = self._checked_rows("anchors", "WHERE version = ?", version)
        return Snapshot(version=version, seq=rows[0][1], state=rows[0][2]) if rows else None

    def num_deleted(self) -> int:
        """How many rows of the log were deleted."""
        deletions = [change for change in self.changes() if change.action == "delete"]
        return sum(int(msgspec.json.decode(change.detail)["rows"]) for change in deletions)

    def checked_blocks(self) -> Iterator[tuple[str, int]]:
        """Check every row of every table, a block for each step, while a server writes; the table and number of rows of each block.

        A damaged or missing row is an error.
        """
        last, num_deleted, num_logged = self.last_seq(), self.num_deleted(), 0
        for table, key in _LONG_TABLES.items():
            after, end = 0, last if table in LOG else self.rows(f"SELECT max({key}) FROM {table}")[0][0]
            while rows := self._checked_rows(table, _BLOCK.format(key), after, end, _ROWS_PER_BLOCK):
                after = rows[-1][0]
                num_logged += len(rows) if table in LOG else 0
                yield table, len(rows)
        # The tables of the log share one sequence of numbers, so rows that are lost leave a gap.
        missing = last - num_logged - num_deleted
        if missing and self.num_deleted() == num_deleted:  # otherwise rows were deleted meanwhile because of their age
            raise DamagedStoreError(
                f"{missing} of {last} rows of the log are missing. Restore the database from a backup."
            )
        for table in self.hashed:
            if table not in _LONG_TABLES:
                yield table, len(self._checked_rows(table))
        for (digest,) in self.rows("SELECT sha256 FROM models"):
            self.model(digest)
            yield "models", 1

    def _check_lessons(self) -> None:
        """Every lesson has the clicks or rewards that events on its list had when its window ended."""
        events: dict[int, list[tuple[int, int, NewEvent]]] = {}
        for statement in (_ATTACHED, _ACCEPTED):
            for ranking_seq, position, seq, body in self._each(statement):
                if (event := EVENT.decode(body)).type in LEARNED:
                    events.setdefault(ranking_seq, []).append((seq, position, event))
        for seq, ranking_seq, clicks, shown in self._each(_LEARNED):
            shown_list = SHOWN.decode(shown)
            marks = fresh_marks(shown_list)
            for event_seq, position, event in sorted(events.get(ranking_seq, ()), key=itemgetter(0)):
                if event_seq > seq:
                    raise DamagedStoreError(f"event {event_seq} was accepted after lesson {seq} on its list.")
                mark(marks, shown_list, event, position)
            if bytes(marks) != clicks:
                raise DamagedStoreError(f"lesson {seq} does not agree with the events on its list.")

    def shown_lists(self) -> Iterator[tuple[int, ShownList, bytes]]:
        """For every list the key of the version that ranked it, the list, and the request as JSON; a damaged row is an error."""
        with self._moment():
            for row in self._each(_LISTS, 0, _LAST):
                check_row("rankings", row)
                yield row[2], SHOWN.decode(row[5]), row[6]

    def audit_lines(self) -> list[tuple[int, str, str]]:
        """Time, what and detail of the lines about keys."""
        rows = self._checked_rows("audit", "ORDER BY number")
        return [(int(stamp), str(what), str(detail)) for _, stamp, what, detail, *_ in rows if "key" in what]

    def insert(self, connection: Any, table: str, columns: tuple[Any, ...]) -> None:
        """Write a row, with its hash where the table has hashes.

        Parameters
        ----------
        connection
            What ``transaction`` gave.
        table
            The table.
        columns
            Its columns, without the hash.
        """
        values = (*columns, row_hash(*columns)) if table in self.hashed else columns
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)

    def _checked_rows(self, table: str, clauses: str = "", *values: Any) -> list[tuple[Any, ...]]:
        """Rows of a table with all their columns; a damaged one is an error where the table has hashes."""
        rows = self.rows(f"SELECT * FROM {table} {clauses}", *values)
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
        return int(self.rows(f"SELECT max(seq) FROM {table}")[0][0] or 0)

    def _last_stamp_of(self, table: str) -> int:
        rows = self.rows(f"SELECT stamp FROM {table} ORDER BY seq DESC LIMIT 1")
        return int(rows[0][0]) if rows else 0


def _snapshot_hash(version: int, seq: int, state: bytes) -> bytes:
    return hashlib.sha256(f"{version} {seq} {len(state)}\n".encode() + state).digest()


def _logged_event(row: tuple[Any, ...]) -> LoggedEvent:
    _, seq, event_id, stamp, fate, position, body, digest, own_fate, own_ranking, own_position = row
    check_row("events", (seq, event_id, stamp, own_fate, own_ranking, own_position, body, digest))
    event = EVENT.decode(body)
    return LoggedEvent(
        event_id=event_id,
        position=position,
        type=event.type,
        value=event.value,
        stamp=stamp,
        in_window=fate == "accepted",
    )


def check_format(name: str, stored: int, readable: int) -> None:
    """Refuse a database of another format, and say what to do with it.

    >>> check_format("shop.db", 2, 1)
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: shop.db has format 2, of a newer rankpolicy; this one reads format 1. Update rankpolicy.
    """
    if stored > readable:
        raise RankPolicyError(
            f"{name} has format {stored}, of a newer rankpolicy; this one reads format {readable}. Update rankpolicy."
        )
    if stored < readable:
        raise RankPolicyError(
            f"{name} has format {stored}, of an older rankpolicy; this one reads format {readable}. "
            "Nothing was changed. A server converts a file that it can read when it starts: rankpolicy serve."
        )
