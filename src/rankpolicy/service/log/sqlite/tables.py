"""The tables of a SQLite database in a transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

import msgspec

from rankpolicy.service.log.tables import Tables
from rankpolicy.service.log.transaction import Row

_JSON = msgspec.json.Encoder()
# Every step of a statement lets the other threads of Python run and then waits for its turn, so one step writes many rows.
_ROWS_PER_STEP = (64, 16, 4, 1)


class SqliteTables(Tables):
    """The tables of one file. Lists go into a statement as JSON: SQLite has no arrays."""

    is_in = "IN (SELECT value FROM json_each(?))"
    hashed = ("pending", "parked")

    def _execute(self, statement: str, *values: Any) -> Any:
        return self._connection.execute(statement, values)

    def _list(self, values: Collection[Any]) -> str:
        return _JSON.encode(list(values)).decode()

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
