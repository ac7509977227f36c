"""Click logs bigger than memory: read in blocks, with identical sessions kept as counts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN, ClickLog
from rankpolicy.clicks.log.counted_sessions import CountedSessions
from rankpolicy.clicks.log.log_tables import (
    COLUMNS,
    NoGoodRowsError,
    checked_columns,
    clicks_of_frame,
    column_of,
    layout_of,
    table_columns,
)
from rankpolicy.data.formats.parquet import parquet_files, unreadable
from rankpolicy.declarations.arguments import checked_kinds, checked_path
from rankpolicy.display import short_repr
from rankpolicy.executors import Executor, opened
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

_BLOCK_ROWS = 500_000
_LEAST_PENDING = 2_000_000  # sessions that are gathered before they are merged


@checked_kinds
def scan_click_log(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    lenient: bool = False,
    executor: Executor | str | None = None,
) -> ClickLog:
    """The log of a Parquet file, or of all those in a folder, with identical sessions as counts.

    Click models and position bias depend on sessions only through these counts, so what they estimate is what they would from the whole
    log. Memory grows with the number of different sessions, not with the length of the log.

    Parameters
    ----------
    path
        The file, or a folder whose ``.parquet`` files are read in the order of their names. Their columns are those of ``read_click_log``:
        sessions (query, items, clicks), counts (query, item, position, impressions, clicks), or rows (session, query, item, position,
        clicked), where the rows of a session stand together.
    columns
        Names of columns that are called differently in the files: ``{"item": "document"}``.
    lenient
        Skip and count malformed rows (where they spoil a session, the whole session) instead of raising an error.
    executor
        Where files are read: an executor of ``rankpolicy.executors`` or its name, such as "processes" or "ray" (whose machines need the
        files at the same path). None reads them here, one after the other. The log does not depend on it.
    """
    given = Path(checked_path(path))
    files = parquet_files(given)
    names = checked_columns(columns)
    layout = _layout(files[0], names)
    merged, num_skipped = MergedSessions(), 0
    if executor is None:
        num_skipped = _add_files(merged, files, layout, names, lenient)
    else:
        with opened(executor) as chosen:
            work = partial(_log_of_file, layout, names, lenient)
            for start in range(0, len(files), 2 * chosen.jobs):  # some at a time, to hold few of them in memory
                for log, skipped in chosen.map(work, files[start : start + 2 * chosen.jobs]):
                    num_skipped += skipped
                    if log is not None:
                        merged.add(log, is_collapsed=True)
    if not merged.num_logs:
        raise RankPolicyError(f"{given} must hold at least one good row; it holds none.")
    log = merged.log()
    return replace(log, num_skipped_rows=log.num_skipped_rows + num_skipped)


def _log_of_file(layout: str, names: dict[str, str], lenient: bool, file: Path) -> tuple[ClickLog | None, int]:
    """The merged sessions of one file, None where no row is good, and how many rows of blocks without a good one were skipped."""
    merged = MergedSessions()
    num_skipped = _add_files(merged, [file], layout, names, lenient)
    return merged.log() if merged.num_logs else None, num_skipped


def _add_files(merged: MergedSessions, files: Sequence[Path], layout: str, names: dict[str, str], lenient: bool) -> int:
    """Add the sessions of these files; how many rows were skipped in blocks without a good one."""
    counted, num_skipped = CountedSessions(names), 0
    for file in files:
        for first_row, frame in _frames(file, layout, names):
            if layout == "sessions" and counted.add(frame):
                continue
            _add_counted(merged, counted, names, file)  # what came first stays first
            try:
                merged.add(clicks_of_frame(frame, layout, names, file=file, first_row=first_row, lenient=lenient))
            except NoGoodRowsError as error:  # of this block; there may be others
                num_skipped += error.num_skipped
    _add_counted(merged, counted, names, files[-1])
    return num_skipped


def _add_counted(merged: MergedSessions, counted: CountedSessions, names: dict[str, str], file: Path) -> None:
    found = counted.take()
    if found is not None:
        frame, counts = found
        for start in range(0, len(frame), _BLOCK_ROWS):
            rows = frame.slice(start, _BLOCK_ROWS)
            log = clicks_of_frame(rows, "sessions", names, file=file, first_row=start, lenient=False)
            merged.add(replace(log, counts=counts[start : start + _BLOCK_ROWS]), is_collapsed=True)


@dataclass(slots=True)
class MergedSessions:
    """The sessions of several logs, with identical ones merged into one with a count, in the order of their first occurrence."""

    _queries: dict[str, int] = field(default_factory=dict)
    _items: dict[str, int] = field(default_factory=dict)
    _merged: ClickLog | None = None
    _pending: list[ClickLog] = field(default_factory=list)
    num_logs: int = 0

    __repr__ = short_repr

    def add(self, log: ClickLog, *, is_collapsed: bool = False) -> None:
        """Add the sessions of a log.

        Parameters
        ----------
        log
            The log; its queries and items are known by their names.
        is_collapsed
            Whether no two sessions of it are identical.
        """
        self.num_logs += 1
        queries = np.array([self._queries.setdefault(name, len(self._queries)) for name in log.query_names], np.int32)
        items = np.array([self._items.setdefault(name, len(self._items)) for name in log.item_names], np.int32)
        renumbered = np.where(log.items == NOT_SHOWN, np.int32(NOT_SHOWN), items[log.items])
        coded = replace(log, query_names=(), item_names=(), queries=queries[log.queries], items=renumbered)
        self._pending.append(coded if is_collapsed else coded.collapsed())
        # Merging costs as much as there are merged sessions, so it waits until as many new ones have come.
        if sum(map(len, self._pending)) > max(_LEAST_PENDING, 0 if self._merged is None else len(self._merged)):
            self._merge()

    def log(self) -> ClickLog:
        """The merged log."""
        self._merge()
        assert self._merged is not None
        return replace(self._merged, query_names=tuple(self._queries), item_names=tuple(self._items))

    def _merge(self) -> None:
        parts = ([] if self._merged is None else [self._merged]) + self._pending
        self._pending = []
        if len({part.has_sessions for part in parts}) > 1:
            raise RankPolicyError("a log must hold sessions or counts by (query, item, position); got files of both.")
        width = max(part.num_positions for part in parts)
        self._merged = replace(
            parts[0],
            queries=np.concatenate([part.queries for part in parts]),
            items=np.concatenate([_widened(part.items, width, NOT_SHOWN) for part in parts]),
            clicks=np.concatenate([_widened(part.clicks, width, 0) for part in parts]),
            counts=np.concatenate([part.counts for part in parts]),
            num_dropped_clicks=sum(part.num_dropped_clicks for part in parts),
            num_repeated_clicks=sum(part.num_repeated_clicks for part in parts),
            num_skipped_rows=sum(part.num_skipped_rows for part in parts),
        ).collapsed()


def _widened(rows: NDArray[Any], width: int, filling: int) -> NDArray[Any]:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=filling)


def _layout(file: Path, names: dict[str, str]) -> str:
    columns = table_columns(file)
    layout = layout_of(columns, names)
    if layout is None:
        wanted = "; ".join(f"{name}: {', '.join(needed)}" for name, needed in COLUMNS.items())
        raise RankPolicyError(
            f"{file} must have the columns of a click log ({wanted}); it has {', '.join(columns[:20])}."
        )
    return layout


def _frames(file: Path, layout: str, names: dict[str, str]) -> Iterator[tuple[int, Any]]:
    """The rows of a file in blocks, each with the number of its first row; the rows of a session stay together."""
    polars = require("polars", "A table of clicks")
    try:
        rows = polars.scan_parquet(file)
        num_rows = rows.select(polars.len()).collect().item()
        start = 0
        while start < num_rows:
            frame = rows.slice(start, _BLOCK_ROWS).collect()
            if layout == "rows" and start + len(frame) < num_rows:
                frame = frame.head(_end_of_whole_sessions(frame, names, file))
            yield start, frame
            start += len(frame)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise unreadable(file, error) from None


def _end_of_whole_sessions(frame: Any, names: dict[str, str], file: Path) -> int:
    """How many rows there are before the last session, which may go on in the next block."""
    column = column_of("session", list(frame.columns), names)
    if column is None:
        has = ", ".join(frame.columns[:20])
        raise RankPolicyError(f"{file} must have the column {names.get('session', 'session')!r}; it has {has}.")
    sessions = frame[column].to_numpy()
    end = int(np.flatnonzero(sessions != sessions[-1])[-1]) + 1 if (sessions != sessions[-1]).any() else 0
    if end == 0:
        raise RankPolicyError(
            f"{file}: a session must have fewer than {_BLOCK_ROWS} rows; {str(sessions[-1])!r} has more."
        )
    return end
