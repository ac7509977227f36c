"""One transaction: lists and events in, duplicates out, windows that are due ended. The same for every database.

Everything is read from the database at once before the work begins and written at once when it is done, so a transaction of a thousand
lists takes a dozen statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from rankpolicy.service.domain.marks import LEARNED, fresh_marks, mark
from rankpolicy.service.domain.messages import ENCODER, NewEvent
from rankpolicy.service.domain.records import (
    Committed,
    Fate,
    Lesson,
    NewEvents,
    NewRanking,
    Outcome,
    ShownList,
    StoredRanking,
)
from rankpolicy.service.errors import ConflictError, DamagedStoreError

if TYPE_CHECKING:
    from rankpolicy.service.log.tables import Tables


_MOST_LESSONS = 2_000  # per transaction, so that no answer waits behind a long backlog
_MOST_LESSONS_SOON = 256  # while users wait

SHOWN = msgspec.json.Decoder(ShownList)
EVENT = msgspec.json.Decoder(NewEvent)
RANKING_COLUMNS = "seq, ranking_id, version, stamp, deadline, shown, request, request_hash, row_hash"

LOG = ("rankings", "events", "attachments", "lessons")  # tables

Row = tuple[Any, ...]
_PACKER = msgspec.msgpack.Encoder()


def row_hash(*columns: Any) -> bytes:
    """Eight bytes that depend on every column, in order.

    >>> row_hash(1, "a") != row_hash("1", "a")
    True
    """
    return blake2b(_PACKER.encode(columns), digest_size=8).digest()


def check_row(table: str, columns: tuple[Any, ...]) -> None:
    """Refuse a row, its hash last, that is not as it was written."""
    if row_hash(*columns[:-1]) != columns[-1]:
        raise DamagedStoreError(
            f"row {columns[0]} of {table} is damaged: its content does not agree with its hash. Restore the database from a backup."
        )


def ranking_of(row: Row) -> StoredRanking:
    """The list in a row of ``rankings``, checked."""
    check_row("rankings", row)
    seq, _, version, stamp, deadline, shown, _, request_hash, _ = row
    return StoredRanking(
        shown=SHOWN.decode(shown), seq=seq, version=version, stamp=stamp, deadline=deadline, request_hash=request_hash
    )


class Transaction:
    """The work of one transaction; its caller begins and commits it."""

    def __init__(
        self, tables: Tables, work: Sequence[NewRanking | NewEvents], *, seq: int, now: int, urgent: bool = False
    ) -> None:
        self._tables, self._work, self._now = tables, work, now
        self._most_lessons = _MOST_LESSONS_SOON if urgent else _MOST_LESSONS
        self.seq = seq
        self._new: dict[str, list[Row]] = {"rankings": [], "events": [], "attachments": [], "lessons": []}
        self._opened: dict[int, tuple[bytearray, StoredRanking]] = {}  # clicks and lists that this transaction stores
        self._changed: dict[int, int] = {}  # deadlines of lists stored before that were clicked now
        self.closed: list[int] = []  # lists whose window has ended
        self._newly_parked: dict[int, tuple[str, int]] = {}  # list and deadline by event
        self._attached: set[str] = set()  # lists whose parked events have found them
        self._read()

    def run(self) -> Committed:
        """Do the work, and end the windows that are due."""
        outcomes: list[Outcome] = [
            self._store_ranking(piece)
            if isinstance(piece, NewRanking)
            else [self._store_event(event, piece.window) for event in piece.events]
            for piece in self._work
        ]
        # Clicks first: a window that ends now is learned with those of this transaction.
        self._write_working_memory()
        lessons = self._end_windows()
        for table, rows in self._new.items():
            if rows:
                self._tables.insert(table, rows)
        return Committed(outcomes=outcomes, lessons=lessons, next_deadline=self._tables.next_deadline())

    @property
    def opened(self) -> list[tuple[bytes, StoredRanking]]:
        """Clicks and lists that were stored and will be learned from."""
        return [(bytes(marks), ranking) for marks, ranking in self._opened.values()]

    @property
    def clicks(self) -> dict[int, bytes]:
        """Clicks on lists from before, by their places in the log."""
        return {seq: bytes(self._clicks[seq]) for seq in sorted(self._changed)}

    def _read(self) -> None:
        """Everything in the database that the work is about."""
        events = [event for piece in self._work if isinstance(piece, NewEvents) for event in piece.events]
        # Nobody has heard of an id that the service has just made, so there is nothing to find.
        shown = {
            piece.shown.ranking_id for piece in self._work if isinstance(piece, NewRanking) and not piece.has_fresh_id
        }
        named = shown | {event.ranking_id for event in events}
        rankings = self._tables.rankings(named) if named else ()
        self._rankings = {ranking.shown.ranking_id: ranking for ranking in rankings}
        ids = {event.event_id for event in events}
        self._bodies = dict(self._tables.event_bodies(ids)) if ids else {}
        clicked = {event.ranking_id for event in events if event.type in LEARNED}
        open_seqs = [self._rankings[name].seq for name in clicked if name in self._rankings]
        self._clicks = {
            seq: bytearray(marks) for seq, marks in (self._tables.open_clicks(open_seqs) if open_seqs else ())
        }
        self._parked: dict[str, list[tuple[int, bytes]]] = {}
        if shown:
            for ranking_id, event_seq, body in self._tables.parked(shown, self._now):
                self._parked.setdefault(ranking_id, []).append((event_seq, body))

    def _store_ranking(self, new: NewRanking) -> StoredRanking | Exception:
        ranking_id = new.shown.ranking_id
        stored_before = self._rankings.get(ranking_id)
        if stored_before is not None:
            if stored_before.request_hash == new.request_hash:
                return stored_before
            return ConflictError(f"ranking_id {ranking_id!r:.80} was used before, for another request. Take a new id.")
        seq, now, deadline = self._next(), self._now, self._now + new.window
        stored = StoredRanking(
            shown=new.shown, seq=seq, version=new.version, stamp=now, deadline=deadline, request_hash=new.request_hash
        )
        shown = ENCODER.encode(new.shown)
        self._add("rankings", (seq, ranking_id, new.version, now, deadline, shown, new.request, new.request_hash))
        self._rankings[ranking_id] = stored
        if new.learns:
            marks = fresh_marks(new.shown)
            self._opened[seq] = (marks, stored)
            self._clicks[seq] = marks
        if ranking_id in self._parked:
            self._attach_parked(stored)
        return stored

    def _store_event(self, event: NewEvent, window: int) -> Fate:
        body = ENCODER.encode(event)
        body_before = self._bodies.get(event.event_id)
        if body_before is not None:
            # Not the bytes: rows of older versions hold defaults too.
            return "duplicate" if EVENT.decode(body_before) == event else "conflict"
        ranking = self._rankings.get(event.ranking_id)
        if ranking is None:
            seq = self._add_event(event.event_id, "orphan", None, None, body)
            self._newly_parked[seq] = (event.ranking_id, self._now + window)
            self._parked.setdefault(event.ranking_id, []).append((seq, body))
            return "orphan"
        if event.item not in ranking.shown.items:
            return "unknown_item"
        position = ranking.shown.items.index(event.item)
        fate: Fate = "late" if self._now > ranking.deadline else "accepted"
        self._add_event(event.event_id, fate, ranking.seq, position, body)
        if fate == "accepted":
            self._mark(ranking, event, position)
        return fate

    def _attach_parked(self, ranking: StoredRanking) -> None:
        """Events that came before their list happen now."""
        for event_seq, body in self._parked.pop(ranking.shown.ranking_id):
            self._newly_parked.pop(event_seq, None)
            event = EVENT.decode(body)
            if event.item in ranking.shown.items:
                position = ranking.shown.items.index(event.item)
                self._add("attachments", (self._next(), event_seq, ranking.seq, position))
                self._mark(ranking, event, position)
        self._attached.add(ranking.shown.ranking_id)

    def _mark(self, ranking: StoredRanking, event: NewEvent, position: int) -> None:
        marks = self._clicks.get(ranking.seq)  # a policy that does not learn has no open lists
        if marks is not None and mark(marks, ranking.shown, event, position) and ranking.seq not in self._opened:
            self._changed[ranking.seq] = ranking.deadline

    def _write_working_memory(self) -> None:
        if self._opened:
            rows = [(seq, ranking.deadline, bytes(marks)) for seq, (marks, ranking) in self._opened.items()]
            self._tables.insert("pending", rows)
        if self._changed:
            self._tables.set_clicks([(seq, self._changed[seq], marks) for seq, marks in self.clicks.items()])
        self._tables.unpark(self._attached, self._now)
        if self._newly_parked:
            self._tables.insert("parked", [(seq, *waiting) for seq, waiting in self._newly_parked.items()])

    def _end_windows(self) -> list[Lesson]:
        """Turn lists whose window has ended into lessons."""
        lessons: list[Lesson] = []
        for clicks, ranking in self._tables.due(self._now, self._most_lessons):
            seq, shown = self._next(), ranking.shown
            self._add("lessons", (seq, ranking.seq, ranking.version, self._now, clicks))
            lessons.append(
                Lesson(
                    seq=seq,
                    version=ranking.version,
                    query=shown.query,
                    items=shown.items,
                    clicks=clicks,
                    memo=shown.memo,
                )
            )
            self.closed.append(ranking.seq)
        if self.closed:
            self._tables.close_windows(self.closed)
        return lessons

    def _add_event(self, event_id: str, fate: Fate, ranking_seq: int | None, position: int | None, body: bytes) -> int:
        seq = self._next()
        self._add("events", (seq, event_id, self._now, fate, ranking_seq, position, body))
        self._bodies[event_id] = body
        return seq

    def _add(self, table: str, columns: Row) -> None:
        self._new[table].append((*columns, row_hash(*columns)))

    def _next(self) -> int:
        self.seq += 1
        return self.seq
