"""What a transaction asks of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rankpolicy.service.domain.records import StoredRanking
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.log.transaction import RANKING_COLUMNS, Row, ranking_of

_COLUMNS = {"rankings": 9, "events": 8, "attachments": 5, "lessons": 6, "pending": 3, "parked": 3}
_INSERT = {table: f"INSERT INTO {table} VALUES ({', '.join(['%s'] * number)})" for table, number in _COLUMNS.items()}
_PARKED = """
    SELECT p.ranking_id, p.event_seq, e.body FROM parked p LEFT JOIN events e ON e.seq = p.event_seq
    WHERE p.ranking_id = ANY(%s) AND p.deadline >= %s ORDER BY p.event_seq
"""
_DUE = f"""
    SELECT p.clicks, p.ranking_seq, {", ".join(f"r.{column}" for column in RANKING_COLUMNS.split(", "))}
    FROM pending p LEFT JOIN rankings r ON r.seq = p.ranking_seq
    WHERE p.deadline < %s ORDER BY p.deadline, p.ranking_seq LIMIT %s
"""


class PostgresTables:
    """The tables of one database."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rankings(self, ranking_ids: Collection[str]) -> Iterable[StoredRanking]:
        rows = self._rows(f"SELECT {RANKING_COLUMNS} FROM rankings WHERE ranking_id = ANY(%s)", list(ranking_ids))
        return map(ranking_of, rows)

    def event_bodies(self, event_ids: Collection[str]) -> Iterable[tuple[str, bytes]]:
        return self._rows("SELECT event_id, body FROM events WHERE event_id = ANY(%s)", list(event_ids))

    def open_clicks(self, ranking_seqs: Collection[int]) -> Iterable[tuple[int, bytes]]:
        return self._rows("SELECT ranking_seq, clicks FROM pending WHERE ranking_seq = ANY(%s)", list(ranking_seqs))

    def parked(self, ranking_ids: Collection[str], now: int) -> Iterable[tuple[str, int, bytes]]:
        return self._rows(_PARKED, list(ranking_ids), now)

    def due(self, now: int, most: int) -> Iterable[tuple[bytes, StoredRanking]]:
        rows = self._rows(_DUE, now, most)
        for _, ranking_seq, *row in rows:
            if row[0] is None:
                raise DamagedStoreError(f"list {ranking_seq} is missing. Restore the database from a backup.")
        return [(clicks, ranking_of(tuple(row))) for clicks, _, *row in rows]

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_INSERT[table], rows)

    def set_clicks(self, rows: Sequence[tuple[int, int, bytes]]) -> None:
        with self._connection.cursor() as cursor:
            changed = [(clicks, seq) for seq, _, clicks in rows]
            cursor.executemany("UPDATE pending SET clicks = %s WHERE ranking_seq = %s", changed)

    def close_windows(self, ranking_seqs: Sequence[int]) -> None:
        self._connection.execute("DELETE FROM pending WHERE ranking_seq = ANY(%s)", (list(ranking_seqs),))

    def unpark(self, ranking_ids: Collection[str], now: int) -> None:
        self._connection.execute(
            "DELETE FROM parked WHERE deadline < %s OR ranking_id = ANY(%s)", (now, list(ranking_ids))
        )

    def next_deadline(self) -> int | None:
        ((deadline,),) = self._rows("SELECT min(deadline) FROM pending")
        return None if deadline is None else int(deadline)

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        return list(self._connection.execute(statement, values).fetchall())
