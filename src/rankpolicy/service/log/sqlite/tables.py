"""What a transaction asks of a SQLite database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec

from rankpolicy.service.domain.records import StoredRanking
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.log.row_hashes import check_row, row_hash
from rankpolicy.service.log.sqlite.open_lists import OpenLists
from rankpolicy.service.log.transaction import EVENT, RANKING_COLUMNS, SHOWN, Row, ranking_of

__all__ = ["EVENT", "SHOWN", "SqliteTables", "read_ranking"]

_JSON = msgspec.json.Encoder()
_PLACES = msgspec.json.Decoder(list[int])
_COLUMNS = {"rankings": 9, "events": 8, "attachments": 5, "lessons": 6, "pending": 4, "parked": 4}
# Every step of a statement lets the other threads of Python run and then waits for its turn, so one step writes many rows.
_ROWS_PER_STEP = (64, 16, 4, 1)
_RANKINGS = f"SELECT {RANKING_COLUMNS} FROM rankings WHERE ranking_id IN (SELECT value FROM json_each(?))"
_BODIES = "SELECT event_id, body FROM events WHERE event_id IN (SELECT value FROM json_each(?))"
_PENDING_COLUMNS = "ranking_seq, deadline, clicks, row_hash"
_CLICKS = f"SELECT {_PENDING_COLUMNS} FROM pending WHERE ranking_seq IN (SELECT value FROM json_each(?))"
_PARKED = """
    SELECT p.event_seq, p.ranking_id, p.deadline, p.row_hash, e.body
    FROM parked p LEFT JOIN events e ON e.seq = p.event_seq
    WHERE p.ranking_id IN (SELECT value FROM json_each(?)) AND p.deadline >= ? ORDER BY p.event_seq
"""
_DUE = """
    SELECT json_group_array(ranking_seq) FROM
    (SELECT ranking_seq FROM pending WHERE deadline < ? ORDER BY deadline, ranking_seq LIMIT ?)
"""
_PENDING = f"""
    SELECT {", ".join(f"p.{column}" for column in _PENDING_COLUMNS.split(", "))},
           {", ".join(f"r.{column}" for column in RANKING_COLUMNS.split(", "))}
    FROM pending p JOIN rankings r ON r.seq = p.ranking_seq
    WHERE p.ranking_seq IN (SELECT value FROM json_each(?))
"""


class SqliteTables:
    """The tables of one database."""

    def __init__(self, connection: Any, remembered: OpenLists, *, patience: int = 0) -> None:
        self._connection, self._remembered, self._patience = connection, remembered, patience
        self._next_deadline = remembered.next_deadline

    def rankings(self, ranking_ids: Collection[str]) -> Iterable[StoredRanking]:
        rankings = [ranking for name in ranking_ids if (ranking := self._remembered.named(name)) is not None]
        if len(rankings) < len(ranking_ids):
            missing = set(ranking_ids) - {ranking.shown.ranking_id for ranking in rankings}
            rankings += map(ranking_of, self._rows(_RANKINGS, _as_json(missing)))
        return rankings

    def event_bodies(self, event_ids: Collection[str]) -> Iterable[tuple[str, bytes]]:
        return self._rows(_BODIES, _as_json(event_ids))

    def open_clicks(self, ranking_seqs: Collection[int]) -> Iterable[tuple[int, bytes]]:
        remembered = {seq: entry[0] for seq in ranking_seqs if (entry := self._remembered.at(seq)) is not None}
        missing = [seq for seq in ranking_seqs if seq not in remembered]
        rows = self._rows(_CLICKS, _as_json(missing)) if missing else []
        for row in rows:
            check_row("pending", row)
        return [*remembered.items(), *((seq, clicks) for seq, _, clicks, _ in rows)]

    def parked(self, ranking_ids: Collection[str], now: int) -> Iterable[tuple[str, int, bytes]]:
        if not self._rows("SELECT 1 FROM parked LIMIT 1"):
            return []
        rows = self._rows(_PARKED, _as_json(ranking_ids), now)
        for *row, body in rows:
            check_row("parked", tuple(row))
            if body is None:
                raise DamagedStoreError(f"event {row[0]} is missing. Restore the database from a backup.")
        return [(ranking_id, event_seq, body) for event_seq, ranking_id, _, _, body in rows]

    def due(self, now: int, most: int) -> Iterable[tuple[bytes, StoredRanking]]:
        if self._next_deadline is None or self._next_deadline + self._patience > now:
            return []
        self._next_deadline = 0  # not known any more
        ((due_seqs,),) = self._rows(_DUE, now, most)
        seqs = _PLACES.decode(due_seqs)
        missing = [seq for seq in seqs if self._remembered.at(seq) is None]
        read: dict[int, tuple[bytes, StoredRanking]] = {}
        for row in self._rows(_PENDING, _as_json(missing)) if missing else ():
            check_row("pending", row[:4])
            read[row[0]] = row[2], ranking_of(row[4:])
        for seq in missing:
            if seq not in read:
                raise DamagedStoreError(f"list {seq} is missing. Restore the database from a backup.")
        return [self._remembered.at(seq) or read[seq] for seq in seqs]

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        if table in ("pending", "parked"):
            rows = _with_hashes(rows)
        self._write(f"INSERT INTO {table} VALUES ", "", _COLUMNS[table], rows)
        if table == "pending" and self._next_deadline != 0:
            first = min(deadline for _, deadline, _, _ in rows)
            self._next_deadline = first if self._next_deadline is None else min(first, self._next_deadline)

    def set_clicks(self, rows: Sequence[tuple[int, int, bytes]]) -> None:
        self._write(
            "WITH new (seq, deadline, clicks, row_hash) AS (VALUES ",
            ") UPDATE pending SET clicks = new.clicks, row_hash = new.row_hash FROM new WHERE ranking_seq = new.seq",
            4,
            _with_hashes(rows),
        )

    def close_windows(self, ranking_seqs: Sequence[int]) -> None:
        self._connection.execute(
            "DELETE FROM pending WHERE ranking_seq IN (SELECT value FROM json_each(?))", (_as_json(ranking_seqs),)
        )

    def unpark(self, ranking_ids: Collection[str], now: int) -> None:
        self._connection.execute("DELETE FROM parked WHERE deadline < ?", (now,))
        if ranking_ids:
            self._connection.execute(
                "DELETE FROM parked WHERE ranking_id IN (SELECT value FROM json_each(?))", (_as_json(ranking_ids),)
            )

    def next_deadline(self) -> int | None:
        if self._next_deadline == 0:
            ((self._next_deadline,),) = self._rows("SELECT min(deadline) FROM pending")
        return self._next_deadline

    def _write(self, start: str, end: str, num_columns: int, rows: Sequence[Row]) -> None:
        row_marks, done = f"({', '.join('?' * num_columns)})", 0
        for size in _ROWS_PER_STEP:
            statement = start + ", ".join([row_marks] * size) + end
            while len(rows) - done >= size:
                self._connection.execute(statement, tuple(chain.from_iterable(rows[done : done + size])))
                done += size

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        return list(self._connection.execute(statement, values).fetchall())


def read_ranking(connection: Any, condition: str, value: str | int) -> StoredRanking | None:
    """A stored list, found by its id or its place in the log."""
    row = connection.execute(f"SELECT {RANKING_COLUMNS} FROM rankings WHERE {condition}", (value,)).fetchone()
    return None if row is None else ranking_of(row)


def _with_hashes(rows: Iterable[Row]) -> list[Row]:
    return [(*row, row_hash(*row)) for row in rows]


def _as_json(values: Collection[Any]) -> str:
    return _JSON.encode(list(values)).decode()
