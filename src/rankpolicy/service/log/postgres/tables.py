"""The tables of a PostgreSQL database in a transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from rankpolicy.service.log.tables import Tables
from rankpolicy.service.log.transaction import Row


class PostgresTables(Tables):
    """The tables of one database."""

    is_in = "= ANY(?)"

    def _execute(self, statement: str, *values: Any) -> Any:
        return self._connection.execute(with_marks(statement), values)

    def _list(self, values: Collection[Any]) -> list[Any]:
        return list(values)

    def _insert(self, table: str, rows: Sequence[Row]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(rows[0]))})", rows)

    def _update_clicks(self, rows: Sequence[Row]) -> None:
        with self._connection.cursor() as cursor:
            changed = [(clicks, seq) for seq, _, clicks in rows]
            cursor.executemany("UPDATE pending SET clicks = %s WHERE ranking_seq = %s", changed)


def with_marks(statement: str) -> str:
    """A statement with psycopg's marks in place of ``?``."""
    return statement.replace("?", "%s")
