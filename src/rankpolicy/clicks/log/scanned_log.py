"""Click logs bigger than memory: read in blocks, with identical sessions kept as counts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN, ClickLog
from rankpolicy.clicks.log.log_tables import (
    CLICK_TABLE,
    COLUMNS,
    NoGoodRowsError,
    checked_columns,
    clicks_of_frame,
    column_of,
    layout_of,
)
from rankpolicy.data.formats.table_files import parquet_blocks, parquet_errors, parquet_files
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
    files = parquet_files(Path(checked_path(path)))
    names = checked_columns(columns)
    layout = layout_of(files[0], names)
    if layout == CLICK_TABLE:
        raise RankPolicyError(f"{files[0]} is a click table, which is not read in blocks. Read it with read_click_log.")
    sessions_of = partial(_sessions_of_files, layout, names, lenient)
    sessions = MergedSessions()
    if executor is None:
        sessions = sessions_of(files)
    else:
        with opened(executor) as chosen:
            for start in range(0, len(files), 2 * chosen.jobs):  # some at a time, to hold few of them in memory
                for of_file in chosen.map(sessions_of, [[file] for file in files[start : start + 2 * chosen.jobs]]):
                    sessions.num_skipped_rows += of_file.num_skipped_rows
                    if of_file.num_logs:
                        sessions.add(of_file.log())
    if not sessions.num_logs:
        raise RankPolicyError(f"{path} must hold at least one good row; it holds none.")
    log = sessions.log()
    return replace(log, num_skipped_rows=log.num_skipped_rows + sessions.num_skipped_rows)


def _sessions_of_files(layout: str, names: dict[str, str], lenient: bool, files: Sequence[Path]) -> MergedSessions:
    sessions = MergedSessions()
    for file in files:
        for first_row, frame in _blocks(file, layout, names):
            try:
                sessions.add(_log_of_block(frame, layout, names, file=file, first_row=first_row, lenient=lenient))
            except NoGoodRowsError as error:  # of this block; there may be others
                sessions.num_skipped_rows += error.num_skipped
    return sessions


def _log_of_block(
    frame: Any, layout: str, names: dict[str, str], *, file: Path, first_row: int, lenient: bool
) -> ClickLog:
    if layout == "sessions":
        # Equal rows are counted before they are read: four times faster where most sessions repeat. If one is malformed,
        # all are read below, where an error names its row and lenient reading counts it.
        with suppress(RankPolicyError, require("polars", "A table of clicks").exceptions.PolarsError):
            columns = [column_of(name, list(frame.columns), names) for name in COLUMNS["sessions"]]
            rows = frame.group_by(columns, maintain_order=True).len("_count")
            log = clicks_of_frame(rows, layout, names, file=file, first_row=0, lenient=False)
            return replace(log, counts=rows["_count"].to_numpy().astype(np.int64))
    return clicks_of_frame(frame, layout, names, file=file, first_row=first_row, lenient=lenient)


@dataclass(slots=True)
class MergedSessions:
    """The sessions of several logs, with identical ones merged into one with a count, in the order of their first occurrence."""

    _queries: dict[str, int] = field(default_factory=dict)
    _items: dict[str, int] = field(default_factory=dict)
    _merged: ClickLog | None = None
    _pending: list[ClickLog] = field(default_factory=list)
    num_logs: int = 0
    num_skipped_rows: int = 0  # in blocks without a good row

    __repr__ = short_repr

    def add(self, log: ClickLog) -> None:
        """Add the sessions of a log."""
        self.num_logs += 1
        queries = np.array([self._queries.setdefault(name, len(self._queries)) for name in log.query_names], np.int32)
        items = np.array([self._items.setdefault(name, len(self._items)) for name in log.item_names], np.int32)
        renumbered = np.where(log.items == NOT_SHOWN, np.int32(NOT_SHOWN), items[log.items])
        coded = replace(log, query_names=(), item_names=(), queries=queries[log.queries], items=renumbered)
        self._pending.append(coded.collapsed())
        # Merging costs as much as there are merged sessions, so it waits until as many new ones have come.
        if sum(map(len, self._pending)) > max(_LEAST_PENDING, 0 if self._merged is None else len(self._merged)):
            self._merge()

    def log(self) -> ClickLog:
        """The merged log."""
        self._merge()
        assert self._merged is not None
        return replace(self._merged, query_names=tuple(self._queries), item_names=tuple(self._items))

    def _merge(self) -> None:
        logs = ([] if self._merged is None else [self._merged]) + self._pending
        self._pending = []
        if len({log.has_sessions for log in logs}) > 1:
            raise RankPolicyError("a log must hold sessions or counts by (query, item, position); got files of both.")
        width = max(log.num_positions for log in logs)
        self._merged = replace(
            logs[0],
            queries=np.concatenate([log.queries for log in logs]),
            items=np.concatenate([_widened(log.items, width, NOT_SHOWN) for log in logs]),
            clicks=np.concatenate([_widened(log.clicks, width, 0) for log in logs]),
            counts=np.concatenate([log.counts for log in logs]),
            num_dropped_clicks=sum(log.num_dropped_clicks for log in logs),
            num_repeated_clicks=sum(log.num_repeated_clicks for log in logs),
            num_skipped_rows=sum(log.num_skipped_rows for log in logs),
        ).collapsed()


def _widened(rows: NDArray[Any], width: int, filling: int) -> NDArray[Any]:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=filling)


def _blocks(file: Path, layout: str, names: dict[str, str]) -> Iterator[tuple[int, Any]]:
    """The rows of a file in blocks, each with the number of its first row; the rows of a session stay together."""
    if layout != "rows":
        yield from parquet_blocks(file, ["*"], block_rows=_BLOCK_ROWS)
        return
    with parquet_errors(file) as polars:
        rows = polars.scan_parquet(file)
        num_rows = rows.select(polars.len()).collect().item()
        start = 0
        while start < num_rows:
            frame = rows.slice(start, _BLOCK_ROWS).collect()
            if start + len(frame) < num_rows:
                frame = frame.head(_end_of_whole_sessions(frame, names, file))
            yield start, frame
            start += len(frame)


def _end_of_whole_sessions(frame: Any, names: dict[str, str], file: Path) -> int:
    """How many rows there are before the last session, which may go on in the next block."""
    column = column_of("session", list(frame.columns), names)
    if column is None:
        has = ", ".join(frame.columns[:20])
        raise RankPolicyError(f"{file} must have the column {names.get('session', 'session')!r}; it has {has}.")
    sessions = frame[column].to_numpy()
    of_others = np.flatnonzero(sessions != sessions[-1])
    if len(of_others) == 0:
        raise RankPolicyError(
            f"{file}: a session must have fewer than {_BLOCK_ROWS} rows; {str(sessions[-1])!r} has more."
        )
    return int(of_others[-1]) + 1
