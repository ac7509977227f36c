"""One transaction: lists and events in, duplicates out, windows that are due ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rankpolicy.service.errors import ConflictError, DamagedStoreError
from rankpolicy.service.records import CLICK, Fate, Lesson, NewEvent, NewEvents, NewRanking, ShownList, StoredRanking
from rankpolicy.service.sqlite.row_hashes import check_row, row_hash

MOST_LESSONS = 2_000  # per transaction, so that no answer waits behind a long backlog

ENCODER = msgspec.json.Encoder()
SHOWN = msgspec.json.Decoder(ShownList)
EVENT = msgspec.json.Decoder(NewEvent)
_RANKING = "seq, ranking_id, version, stamp, deadline, shown, request, request_hash, row_hash"


def read_ranking(connection: Any, condition: str, value: str | int) -> StoredRanking | None:
    """A stored list, found by its id or its place in the log.

    Parameters
    ----------
    connection
        A connection.
    condition
        ``"ranking_id = ?"`` or ``"seq = ?"``.
    value
        The id or the place.
    """
    row = connection.execute(f"SELECT {_RANKING} FROM rankings WHERE {condition}", (value,)).fetchone()
    if row is None:
        return None
    check_row("rankings", row)
    seq, _, version, stamp, deadline, shown, _, request_hash, _ = row
    return StoredRanking(
        shown=SHOWN.decode(shown), seq=seq, version=version, stamp=stamp, deadline=deadline, request_hash=request_hash
    )


class Transaction:
    """The statements of one transaction; its caller begins and commits it.

    Parameters
    ----------
    connection
        A connection inside a transaction.
    seq
        The last place in the log that is taken.
    now
        The time of the service.
    """

    def __init__(self, connection: Any, *, seq: int, now: int) -> None:
        self._connection = connection
        self._now = now
        self.seq = seq
        self._rankings: dict[str, StoredRanking | None] = {}  # that this transaction has read or written

    def do(self, work: NewRanking | NewEvents) -> StoredRanking | Exception | list[Fate]:
        """Store a list or events.

        Parameters
        ----------
        work
            What to store.
        """
        if isinstance(work, NewRanking):
            return self._store_ranking(work)
        return [self._store_event(event, work.window) for event in work.events]

    def end_windows(self) -> list[Lesson]:
        """Turn lists whose window has ended into lessons, and let events go whose list never came."""
        self._connection.execute("DELETE FROM parked WHERE deadline < ?", (self._now,))
        due = self._connection.execute(
            "SELECT ranking_seq, clicks FROM pending WHERE deadline < ? ORDER BY deadline, ranking_seq LIMIT ?",
            (self._now, MOST_LESSONS),
        ).fetchall()
        return [self._end_window(ranking_seq, clicks) for ranking_seq, clicks in due]

    def _store_ranking(self, new: NewRanking) -> StoredRanking | Exception:
        ranking_id = new.shown.ranking_id
        known = self._ranking(ranking_id)
        if known is not None:
            if known.request_hash == new.request_hash:
                return known
            return ConflictError(f"ranking_id {ranking_id!r:.80} was used before, for another request. Take a new id.")
        deadline = self._now + new.window
        stored = StoredRanking(
            shown=new.shown,
            seq=self._next(),
            version=new.version,
            stamp=self._now,
            deadline=deadline,
            request_hash=new.request_hash,
        )
        shown = ENCODER.encode(new.shown)
        self._insert(
            "rankings", (stored.seq, ranking_id, new.version, self._now, deadline, shown, new.request, new.request_hash)
        )
        self._rankings[ranking_id] = stored
        if new.learns:
            clicks = bytes(len(new.shown.items))
            self._connection.execute("INSERT INTO pending VALUES (?, ?, ?)", (stored.seq, deadline, clicks))
        self._attach_parked(stored)
        return stored

    def _store_event(self, event: NewEvent, window: int) -> Fate:
        body = ENCODER.encode(event)
        known = self._connection.execute("SELECT body FROM events WHERE event_id = ?", (event.event_id,)).fetchone()
        if known is not None:
            return "duplicate" if known[0] == body else "conflict"
        ranking = self._ranking(event.ranking_id)
        if ranking is None:
            seq = self._insert_event(event.event_id, "orphan", None, None, body)
            self._connection.execute("INSERT INTO parked VALUES (?, ?, ?)", (seq, event.ranking_id, self._now + window))
            return "orphan"
        if event.item not in ranking.shown.items:
            return "unknown_item"
        position = ranking.shown.items.index(event.item)
        fate: Fate = "late" if self._now > ranking.deadline else "accepted"
        self._insert_event(event.event_id, fate, ranking.seq, position, body)
        if fate == "accepted" and event.type == CLICK:
            self._mark_click(ranking.seq, position)
        return fate

    def _attach_parked(self, ranking: StoredRanking) -> None:
        """Events that came before their list happen now."""
        waiting = self._connection.execute(
            "SELECT event_seq FROM parked WHERE ranking_id = ? AND deadline >= ? ORDER BY event_seq",
            (ranking.shown.ranking_id, self._now),
        ).fetchall()
        for (event_seq,) in waiting:
            (body,) = self._connection.execute("SELECT body FROM events WHERE seq = ?", (event_seq,)).fetchone()
            event = EVENT.decode(body)
            if event.item in ranking.shown.items:
                position = ranking.shown.items.index(event.item)
                self._insert("attachments", (self._next(), event_seq, ranking.seq, position))
                if event.type == CLICK:
                    self._mark_click(ranking.seq, position)
        if waiting:
            self._connection.execute("DELETE FROM parked WHERE ranking_id = ?", (ranking.shown.ranking_id,))

    def _mark_click(self, ranking_seq: int, position: int) -> None:
        found = self._connection.execute("SELECT clicks FROM pending WHERE ranking_seq = ?", (ranking_seq,)).fetchone()
        if found is not None and not found[0][position]:  # a policy that does not learn has no pending lists
            clicks = bytearray(found[0])
            clicks[position] = 1
            self._connection.execute(
                "UPDATE pending SET clicks = ? WHERE ranking_seq = ?", (bytes(clicks), ranking_seq)
            )

    def _end_window(self, ranking_seq: int, clicks: bytes) -> Lesson:
        ranking = read_ranking(self._connection, "seq = ?", ranking_seq)
        if ranking is None:
            raise DamagedStoreError(f"list {ranking_seq} is missing. Restore the database from a backup.")
        seq = self._next()
        self._insert("lessons", (seq, ranking_seq, ranking.version, self._now, clicks))
        self._connection.execute("DELETE FROM pending WHERE ranking_seq = ?", (ranking_seq,))
        shown = ranking.shown
        return Lesson(
            seq=seq, version=ranking.version, query=shown.query, items=shown.items, clicks=clicks, memo=shown.memo
        )

    def _ranking(self, ranking_id: str) -> StoredRanking | None:
        if ranking_id not in self._rankings:
            self._rankings[ranking_id] = read_ranking(self._connection, "ranking_id = ?", ranking_id)
        return self._rankings[ranking_id]

    def _insert_event(
        self, event_id: str, fate: Fate, ranking_seq: int | None, position: int | None, body: bytes
    ) -> int:
        seq = self._next()
        self._insert("events", (seq, event_id, self._now, fate, ranking_seq, position, body))
        return seq

    def _insert(self, table: str, columns: Sequence[Any]) -> None:
        marks = ", ".join("?" * (len(columns) + 1))
        self._connection.execute(f"INSERT INTO {table} VALUES ({marks})", (*columns, row_hash(*columns)))

    def _next(self) -> int:
        self.seq += 1
        return self.seq
