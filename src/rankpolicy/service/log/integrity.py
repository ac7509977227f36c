"""A whole database, checked: no row of the log missing, every row as it was written, every lesson what the events say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from rankpolicy.service.domain.messages import CLICK
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.log.row_hashes import check_row
from rankpolicy.service.log.transaction import EVENT, LOG, SHOWN


def check_all_rows(
    rows_of: Callable[[str], Iterable[Any]], hashed: Collection[str], num_deleted: int = 0
) -> dict[str, int]:
    """Check every row; the number of rows of the log by table."""
    counts = _check_log(rows_of, num_deleted)
    _check_lessons(rows_of)
    for table in hashed:
        for row in rows_of(f"SELECT * FROM {table}"):
            check_row(table, row)
    return counts


def _check_log(rows_of: Callable[[str], Iterable[Any]], num_deleted: int) -> dict[str, int]:
    counts, last = {}, 0
    for table in LOG:
        counts[table] = 0
        for row in rows_of(f"SELECT * FROM {table} ORDER BY seq"):
            check_row(table, row)
            counts[table] += 1
            last = max(last, row[0])
    # The tables share one sequence of numbers, so rows that are lost leave a gap.
    missing = last - sum(counts.values()) - num_deleted
    if missing:
        raise DamagedStoreError(f"{missing} of {last} rows of the log are missing. Restore the database from a backup.")
    return counts


def _check_lessons(rows_of: Callable[[str], Iterable[Any]]) -> None:
    """Every lesson has the clicks that events on its list had when its window ended."""
    clicked: dict[int, set[tuple[int, int]]] = {}
    attached = rows_of(
        "SELECT a.ranking_seq, a.position, a.seq, e.body FROM attachments a JOIN events e ON e.seq = a.event_seq"
    )
    accepted = rows_of("SELECT ranking_seq, position, seq, body FROM events WHERE fate = 'accepted'")
    for rows in (attached, accepted):
        for ranking_seq, position, seq, body in rows:
            if EVENT.decode(body).type == CLICK:
                clicked.setdefault(ranking_seq, set()).add((position, seq))
    learned = rows_of(
        "SELECT l.seq, l.ranking_seq, l.clicks, r.shown FROM lessons l JOIN rankings r ON r.seq = l.ranking_seq"
    )
    for seq, ranking_seq, clicks, shown in learned:
        marks = bytearray(len(SHOWN.decode(shown).items))
        for position, event_seq in clicked.get(ranking_seq, ()):
            if event_seq > seq:
                raise DamagedStoreError(f"event {event_seq} was accepted after lesson {seq} on its list.")
            marks[position] = 1
        if bytes(marks) != clicks:
            raise DamagedStoreError(f"lesson {seq} does not agree with the events on its list.")
