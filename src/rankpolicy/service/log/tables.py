"""What a transaction asks of a database, and what it writes: the same statements for every database as far as they can be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rankpolicy.service.domain.records import StoredRanking
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.log.transaction import RANKING_COLUMNS, Row, check_row, ranking_of, row_hash

_NUM_RANKING_COLUMNS = len(RANKING_COLUMNS.split(", "))
_DUE = "SELECT ranking_seq FROM pending WHERE deadline < ? ORDER BY deadline, ranking_seq LIMIT ?"
_PENDING = f"""
    SELECT p.*, {", ".join(f"r.{column}" for column in RANKING_COLUMNS.split(", "))}
    FROM pending p JOIN rankings r ON r.seq = p.ranking_seq WHERE p.ranking_seq {{}}
"""
_PARKED = """
    SELECT p.*, e.body FROM parked p LEFT JOIN events e ON e.seq = p.event_seq
    WHERE p.ranking_id {} AND p.deadline >= ? ORDER BY p.event_seq
"""
MOST_ITEMS = 200_000  # in all lists together, about 40 MB; of more, the oldest lists are read from the database when they are needed


class OpenLists:
    """What committed transactions have stored about lists that policies will learn from. After a failure it is cleared.

    Only the one server that writes a database may have it: another writer would change clicks without its knowing.
    """

    def __init__(self, most: int = MOST_ITEMS) -> None:
        self._most = most
        self.clear()

    def __len__(self) -> int:
        return len(self._lists)

    def clear(self) -> None:
        """Forget all lists."""
        self._lists: dict[int, tuple[bytes, StoredRanking]] = {}
        self._seqs: dict[str, int] = {}
        self._num_items = 0
        # When the next window ends; None where none is open, 0 where that is not known.
        self.next_deadline: int | None = 0

    def named(self, ranking_id: str) -> StoredRanking | None:
        """The list with this id; None where it is not remembered."""
        seq = self._seqs.get(ranking_id)
        return None if seq is None else self._lists[seq][1]

    def at(self, seq: int) -> tuple[bytes, StoredRanking] | None:
        """Clicks and list at a place in the log; None where it is not remembered."""
        return self._lists.get(seq)

    def follow(
        self,
        opened: Iterable[tuple[bytes, StoredRanking]],
        clicks: Mapping[int, bytes],
        closed: Iterable[int],
        next_deadline: int | None,
    ) -> None:
        """Know what a transaction has changed."""
        self.next_deadline = next_deadline
        for marks, ranking in opened:
            self._lists[ranking.seq] = marks, ranking
            self._seqs[ranking.shown.ranking_id] = ranking.seq
            self._num_items += len(marks)
        for seq, marks in clicks.items():
            if seq in self._lists:
                self._lists[seq] = marks, self._lists[seq][1]
        for seq in closed:
            self._drop(seq)
        while self._num_items > self._most:
            self._drop(next(iter(self._lists)))

    def _drop(self, seq: int) -> None:
        marks, ranking = self._lists.pop(seq, (b"", None))
        if ranking is not None:
            del self._seqs[ranking.shown.ranking_id]
            self._num_items -= len(marks)


class Tables(ABC):
    """The tables of one database in one transaction; rows have the columns of the schema, in order.

    ``remembered`` has lists that need not be read again; it stays empty where other servers write too.
    """

    is_in: str  # SQL behind a column whose value is one of those that ``_list`` was given
    hashed: Collection[str] = ()  # of pending and parked, those whose rows carry a hash

    def __init__(self, connection: Any, remembered: OpenLists, *, patience: int = 0) -> None:
        self._connection, self._remembered, self._patience = connection, remembered, patience
        self._next_deadline = remembered.next_deadline

    @abstractmethod
    def _execute(self, statement: str, *values: Any) -> Any: ...

    @abstractmethod
    def _list(self, values: Collection[Any]) -> Any: ...

    @abstractmethod
    def _insert(self, table: str, rows: Sequence[Row]) -> None: ...

    @abstractmethod
    def _update_clicks(self, rows: Sequence[Row]) -> None: ...

    def rankings(self, ranking_ids: Collection[str]) -> Iterable[StoredRanking]:
        """Those of these lists that there are."""
        rankings = [ranking for name in ranking_ids if (ranking := self._remembered.named(name)) is not None]
        if len(rankings) < len(ranking_ids):
            missing = set(ranking_ids) - {ranking.shown.ranking_id for ranking in rankings}
            statement = f"SELECT {RANKING_COLUMNS} FROM rankings WHERE ranking_id {self.is_in}"
            rankings += map(ranking_of, self._rows(statement, self._list(missing)))
        return rankings

    def event_bodies(self, event_ids: Collection[str]) -> Iterable[tuple[str, bytes]]:
        """Id and body of those of these events that there are."""
        return self._rows(f"SELECT event_id, body FROM events WHERE event_id {self.is_in}", self._list(event_ids))

    def open_clicks(self, ranking_seqs: Collection[int]) -> Iterable[tuple[int, bytes]]:
        """Clicks on those of these lists whose window is open."""
        remembered = {seq: entry[0] for seq in ranking_seqs if (entry := self._remembered.at(seq)) is not None}
        missing = [seq for seq in ranking_seqs if seq not in remembered]
        statement = f"SELECT * FROM pending WHERE ranking_seq {self.is_in}"
        rows = self._rows(statement, self._list(missing)) if missing else []
        for row in rows:
            self._check("pending", row)
        return [*remembered.items(), *((row[0], row[2]) for row in rows)]

    def parked(self, ranking_ids: Collection[str], now: int) -> Iterable[tuple[str, int, bytes]]:
        """List, place in the log and body of events that wait for these lists, in the order of the log."""
        if not self._rows("SELECT 1 FROM parked LIMIT 1"):
            return []
        rows = self._rows(_PARKED.format(self.is_in), self._list(ranking_ids), now)
        for *row, body in rows:
            self._check("parked", tuple(row))
            if body is None:
                raise DamagedStoreError(f"event {row[0]} is missing. Restore the database from a backup.")
        return [(row[1], row[0], row[-1]) for row in rows]

    def due(self, now: int, most: int) -> Iterable[tuple[bytes, StoredRanking]]:
        """Clicks and lists whose window has ended, in the order of their deadlines."""
        if self._next_deadline is None or self._next_deadline + self._patience > now:
            return []
        self._next_deadline = 0  # not known any more
        seqs = [seq for (seq,) in self._rows(_DUE, now, most)]
        missing = [seq for seq in seqs if self._remembered.at(seq) is None]
        read: dict[int, tuple[bytes, StoredRanking]] = {}
        for row in self._rows(_PENDING.format(self.is_in), self._list(missing)) if missing else ():
            self._check("pending", row[:-_NUM_RANKING_COLUMNS])
            read[row[0]] = row[2], ranking_of(row[-_NUM_RANKING_COLUMNS:])
        for seq in missing:
            if seq not in read:
                raise DamagedStoreError(f"list {seq} is missing. Restore the database from a backup.")
        return [self._remembered.at(seq) or read[seq] for seq in seqs]

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        """Add rows to a table."""
        self._insert(table, self._with_hashes(table, rows))
        if table == "pending" and self._next_deadline != 0:
            first = min(row[1] for row in rows)
            self._next_deadline = first if self._next_deadline is None else min(first, self._next_deadline)

    def set_clicks(self, rows: Sequence[tuple[int, int, bytes]]) -> None:
        """Change the clicks on open lists; the rows are those of ``pending``."""
        self._update_clicks(self._with_hashes("pending", rows))

    def close_windows(self, ranking_seqs: Sequence[int]) -> None:
        """Drop open lists."""
        self._execute(f"DELETE FROM pending WHERE ranking_seq {self.is_in}", self._list(ranking_seqs))

    def unpark(self, ranking_ids: Collection[str], now: int) -> None:
        """Drop events that wait for these lists, and those that have waited too long."""
        self._execute("DELETE FROM parked WHERE deadline < ?", now)
        if ranking_ids:
            self._execute(f"DELETE FROM parked WHERE ranking_id {self.is_in}", self._list(ranking_ids))

    def next_deadline(self) -> int | None:
        """When the next window ends; None where none is open."""
        if self._next_deadline == 0:
            ((self._next_deadline,),) = self._rows("SELECT min(deadline) FROM pending")
        return self._next_deadline

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        return list(self._execute(statement, *values).fetchall())

    def _check(self, table: str, row: Row) -> None:
        if table in self.hashed:
            check_row(table, row)

    def _with_hashes(self, table: str, rows: Sequence[Row]) -> Sequence[Row]:
        return [(*row, row_hash(*row)) for row in rows] if table in self.hashed else rows
