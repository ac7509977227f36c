"""Click logs in Parquet and CSV: one row per shown item, one row per session, or counts by (query, item, position)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN, ClickLog, padded_log, repeated_items
from rankpolicy.data.click_table.table import NEEDED, is_click_table
from rankpolicy.data.formats.table_files import is_parquet, table_columns, table_frame
from rankpolicy.files import checked_file
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError, unknown_name

# Columns of each layout and the other names they may have; letter case does not matter.
COLUMNS = {
    "rows": ("session", "query", "item", "position", "clicked"),
    "sessions": ("query", "items", "clicks"),
    "counts": ("query", "item", "position", "impressions", "clicks"),
}
CLICK_TABLE = "click-table"  # what read_click_table reads
OTHER_NAMES = {
    "session": ("session_id",),
    "query": ("qid", "query_id"),
    "item": ("url", "item_id"),
    "position": ("pos", "rank"),
    "clicked": ("click",),
    "clicks": ("click",),
    "impressions": ("impression",),
}
SEPARATORS = r"[\s|;]+"  # between the entries of a list in a cell of CSV


def read_table_clicks(
    path: str | os.PathLike[str],
    *,
    layout: str,
    columns: Mapping[str, str] | None = None,
    lenient: bool = False,
) -> ClickLog:
    """Read a table of the layout "rows", "sessions" or "counts"; COLUMNS lists the columns of each.

    - rows: one row per shown item, in any order; positions of a session are 1, 2, ... (or count from 0, if one is 0); clicked is 0 or 1;
    - sessions: items and clicks are lists of equal length (in CSV texts such as ``a b c`` and ``0 1 0``);
    - counts: how often an item was shown at a position and how often it was clicked there; clicks in excess of the impressions are
      repeated ones, and dropped.

    ``columns`` maps names to those of the file: {"item": "document"}. A malformed row is an error with its line (CSV) or row (Parquet);
    with ``lenient`` the row, or the session that it belongs to, is left out and counted.
    """
    return _READERS[layout](_Table.read(path, layout, dict(columns or {}), lenient))


def clicks_of_frame(
    frame: Any, layout: str, columns: dict[str, str], *, file: Path, first_row: int, lenient: bool
) -> ClickLog:
    """The log of some rows of a Parquet file, in a polars frame; ``first_row`` is the number of the first of them in the file."""
    return _READERS[layout](
        _Table.of_frame(frame, layout, columns, file=file, lenient=lenient, first_line=first_row + 1)
    )


def layout_of(path: str | os.PathLike[str], names: Mapping[str, str]) -> str:
    """The layout of a table, where ``names`` says what some columns are called in it; "click-table" for one of texts."""
    require("polars", "A table of clicks")
    columns = [name.strip().lower() for name in table_columns(path)]
    for layout, needed in COLUMNS.items():
        if all(name in names or _found(name, columns) for name in needed):
            return layout
    if is_click_table([*columns, *names]):
        return CLICK_TABLE
    layouts = "; ".join(f"{name}: {', '.join(needed)}" for name, needed in {**COLUMNS, CLICK_TABLE: NEEDED}.items())
    raise RankPolicyError(
        f"{path} must have the columns of a click log ({layouts}); it has {', '.join(columns[:20])}. "
        'Say what they are called: columns={"item": "document"}, on the command line --columns item=document.'
    )


def checked_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    """What columns are called in the file, by the names that the readers know: {"rank": "pos"} is {"position": "pos"}."""
    name_of = {other: name for name, other_names in OTHER_NAMES.items() for other in other_names if other != "click"}
    name_of |= {name: name for needed in COLUMNS.values() for name in needed}
    name_of |= {"click": "clicked"} | {name: name for name in ("query_text", "item_text", "timestamp", "user")}
    checked: dict[str, str] = {}
    for name, column in (columns or {}).items():
        if name not in name_of:
            raise RankPolicyError(unknown_name("column of a click log", name, name_of))
        if checked.setdefault(name_of[name], column) != column:
            raise RankPolicyError(
                f"a click log has one column {name_of[name]!r}; got {checked[name_of[name]]!r} and {column!r} for it."
            )
    return checked


def _found(name: str, columns: list[str]) -> str | None:
    """The column of this name, or of another name for it."""
    by_small = {column.lower(): column for column in columns}
    return next((by_small[spelling] for spelling in (name, *OTHER_NAMES.get(name, ())) if spelling in by_small), None)


def column_of(name: str, columns: list[str], names: dict[str, str]) -> str | None:
    """The column that is meant by a name: the one the user gave for it, or one that is called so."""
    if name in names:
        return names[name] if names[name] in columns else None
    return _found(name, columns)


class NoGoodRowsError(RankPolicyError):
    """All rows are malformed."""

    def __init__(self, path: Path, num_skipped: int) -> None:
        super().__init__(f"{path} must hold at least one good row; all {num_skipped} are malformed.")
        self.num_skipped = num_skipped


_HIGHEST = 2**53  # the whole numbers that a float holds exactly
_LAST_POSITION = 10_000


class _Table:
    """A table with the columns of a layout, which leaves out or refuses malformed rows."""

    def __init__(self, path: Path, frame: Any, lenient: bool, first_line: int) -> None:
        self.path, self.frame, self.lenient, self.first_line = path, frame, lenient, first_line
        self.num_skipped = 0

    @classmethod
    def read(cls, path: str | os.PathLike[str], layout: str, names: dict[str, str], lenient: bool) -> _Table:
        file = checked_file(path)
        frame = table_frame(file, infer_types=False, lenient=lenient)
        return cls.of_frame(frame, layout, names, file=file, lenient=lenient, first_line=1 if is_parquet(file) else 2)

    @classmethod
    def of_frame(
        cls, frame: Any, layout: str, names: dict[str, str], *, file: Path, lenient: bool, first_line: int
    ) -> _Table:
        polars = require("polars", "A table of clicks")
        chosen = {}
        for name in COLUMNS[layout]:
            column = column_of(name, list(frame.columns), names)
            if column is None:
                raise RankPolicyError(
                    f"{file} must have the column {names.get(name, name)!r} ({layout}: {', '.join(COLUMNS[layout])}); "
                    f"it has {', '.join(frame.columns[:20])}."
                )
            chosen[name] = column
        if len(frame) == 0:
            raise RankPolicyError(f"{file} must hold at least one row below its header; it holds none.")
        frame = frame.select([polars.col(column).alias(name) for name, column in chosen.items()])
        return cls(file, frame.with_row_index("_row"), lenient, first_line)

    def drop(self, is_bad: NDArray[np.bool_], what: str) -> None:
        """Leave rows out if lenient, otherwise raise an error that names the first."""
        if not is_bad.any():
            return
        if not self.lenient:
            row = self.frame.row(int(np.argmax(is_bad)), named=True)
            kind = "row" if is_parquet(self.path) else "line"
            location = f"{kind} {row.pop('_row') + self.first_line}"
            shown = ", ".join(f"{name}={value!r}" for name, value in row.items())
            raise RankPolicyError(
                f"{self.path}, {location}: expected {what}; got {shown}.",
                python="Skip such rows with lenient=True.",
                command_line="Skip such rows with --lenient.",
            )
        self.num_skipped += int(is_bad.sum())
        self.frame = self.frame.filter(~is_bad)
        if len(self.frame) == 0:
            raise NoGoodRowsError(self.path, self.num_skipped)

    def whole_numbers(self, name: str, lowest: int, what: str) -> None:
        """Turn a column into whole numbers that are at least ``lowest``."""
        polars = require("polars", "A table of clicks")
        column = self.frame[name]
        if column.dtype == polars.String:
            column = column.str.strip_chars().replace_strict(
                {"true": "1", "True": "1", "false": "0", "False": "0"}, default=column.str.strip_chars()
            )
        numbers = column.cast(polars.Float64, strict=False).fill_null(np.nan).to_numpy()
        good = np.isfinite(numbers) & (numbers >= lowest) & (numbers == np.floor(numbers)) & (numbers < _HIGHEST)
        self.drop(~good, what)
        self.frame = self.frame.with_columns(polars.Series(name, numbers[good]).cast(polars.Int64))

    def missing(self, *names: str) -> None:
        for name in names:
            self.drop(self.frame[name].is_null().to_numpy(), f"a value for {name}")

    def codes(self, name: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Names of a column in the order of their first occurrence, and their codes."""
        return _coded_series(self.frame[name])


def _coded_series(series: Any) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    polars = require("polars", "A table of clicks")
    texts = series.cast(polars.String)
    names = texts.unique(maintain_order=True)
    return tuple(names.to_list()), texts.cast(polars.Enum(names)).to_physical().to_numpy().astype(np.int64)


def _rows(table: _Table) -> ClickLog:
    table.missing("session", "query", "item")
    table.whole_numbers("clicked", 0, "clicked to be 0 or 1")
    table.drop(table.frame["clicked"].to_numpy() > 1, "clicked to be 0 or 1")
    table.whole_numbers("position", 0, "position to be a whole number, 1 or more")
    _, sessions = table.codes("session")
    order = np.lexsort((table.frame["position"].to_numpy(), sessions))
    table.frame, sessions = table.frame[order], sessions[order]
    positions = table.frame["position"].to_numpy()
    starts = np.flatnonzero(np.diff(sessions, prepend=-1))
    lengths = np.diff(starts, append=len(sessions))
    _, queries = table.codes("query")
    # Positions 1, 2, 3, ... without a gap, and one query: otherwise the whole session is malformed, not only the row.
    expected = np.arange(len(positions)) - np.repeat(starts, lengths) + (0 if positions.min() == 0 else 1)
    is_bad = (positions != expected) | (queries != np.repeat(queries[starts], lengths))
    is_repeated = repeated_items(sessions, table.codes("item")[1])
    if not table.lenient:
        table.drop(is_repeated & ~is_bad, "every item of a session once")
    is_bad |= is_repeated
    if is_bad.any():
        spoilt = np.repeat(np.logical_or.reduceat(is_bad, starts), lengths)
        table.drop(spoilt if table.lenient else is_bad, "the positions of a session to be 1, 2, 3, ... of one query")
        is_good = ~spoilt
        sessions = sessions[is_good]
        starts = np.flatnonzero(np.diff(sessions, prepend=-1))
        lengths = np.diff(starts, append=len(sessions))
    query_names, queries = table.codes("query")
    item_names, items = table.codes("item")
    return padded_log(
        query_names,
        item_names,
        queries[starts],
        lengths,
        items,
        table.frame["clicked"].to_numpy(),
        num_skipped_rows=table.num_skipped,
    )


def _sessions(table: _Table) -> ClickLog:
    polars = require("polars", "A table of clicks")
    table.missing("query", "items", "clicks")
    for name in ("items", "clicks"):
        if table.frame[name].dtype == polars.String:
            texts = [text.strip("[](){} ") for text in table.frame[name].to_list()]
            lists = polars.Series(name, texts).str.replace_all(SEPARATORS, " ").str.replace_all(",", " ")
            lists = lists.str.replace_all(r"\s+", " ").str.strip_chars().str.split(" ")
            table.frame = table.frame.with_columns(lists.alias(name))
        if not isinstance(table.frame[name].dtype, polars.List | polars.Array):
            raise RankPolicyError(
                f"{table.path}: the column {name} must hold lists; it holds {table.frame[name].dtype}."
            )
        table.frame = table.frame.with_columns(polars.col(name).cast(polars.List(polars.String)))
    lengths = table.frame["items"].list.len().to_numpy()
    same = lengths == table.frame["clicks"].list.len().to_numpy()
    table.drop(~same | (lengths == 0), "as many clicks as items, and at least one")
    marks = polars.element().replace_strict(
        {"0": 0, "1": 1, "true": 1, "false": 0}, default=None, return_dtype=polars.Int8
    )
    table.frame = table.frame.with_columns(clicks=polars.col("clicks").list.eval(marks))
    table.drop(table.frame["clicks"].list.eval(polars.element().is_null()).list.any().to_numpy(), "clicks to be 0 or 1")
    has_null = table.frame["items"].list.eval(polars.element().is_null() | (polars.element() == "")).list.any()
    table.drop(has_null.to_numpy(), "every item to have a name")
    is_repeated = table.frame["items"].list.n_unique() != table.frame["items"].list.len()
    table.drop(is_repeated.to_numpy(), "every item of a list once")
    query_names, queries = table.codes("query")
    item_names, items = _coded_series(table.frame["items"].explode())
    return padded_log(
        query_names,
        item_names,
        queries,
        table.frame["items"].list.len().to_numpy().astype(np.int64),
        items,
        table.frame["clicks"].explode().to_numpy(),
        num_skipped_rows=table.num_skipped,
    )


def _counts(table: _Table) -> ClickLog:
    table.missing("query", "item")
    table.whole_numbers("position", 0, "position to be a whole number, 1 or more")
    table.whole_numbers("impressions", 0, "impressions to be a whole number, 0 or more")
    table.whole_numbers("clicks", 0, "clicks to be a whole number, 0 or more")
    query_names, queries = table.codes("query")
    item_names, items = table.codes("item")
    clicks, shown, positions = (table.frame[name].to_numpy() for name in ("clicks", "impressions", "position"))
    if positions.max() > _LAST_POSITION:
        raise RankPolicyError(f"{table.path}: positions must be at most {_LAST_POSITION}; got {positions.max()}.")
    positions = positions - (0 if positions.min() == 0 else 1)
    # Clicks in excess of the impressions are repeated ones: an impression counts as clicked or not.
    num_repeated = int(np.maximum(clicks - shown, 0).sum())
    clicks = np.minimum(clicks, shown)
    # Two rows of the log for each row of the table: the impressions with a click and those without.
    rows = np.repeat(np.arange(len(queries)), 2)
    marks = np.tile(np.array([1, 0], np.int8), len(queries))
    counts = np.column_stack([clicks, shown - clicks]).ravel()
    rows, marks, counts = rows[counts > 0], marks[counts > 0], counts[counts > 0]
    if len(rows) == 0:
        raise RankPolicyError(f"{table.path} must count at least one impression; it counts none.")
    all_items = np.full((len(rows), int(positions.max()) + 1), NOT_SHOWN, np.int32)
    all_clicks = np.zeros(all_items.shape, np.int8)
    all_items[np.arange(len(rows)), positions[rows]] = items[rows]
    all_clicks[np.arange(len(rows)), positions[rows]] = marks
    return ClickLog(
        query_names=query_names,
        item_names=item_names,
        queries=queries[rows].astype(np.int32),
        items=all_items,
        clicks=all_clicks,
        counts=counts.astype(np.int64),
        has_sessions=False,
        num_repeated_clicks=num_repeated,
        num_skipped_rows=table.num_skipped,
    )


_READERS = {"rows": _rows, "sessions": _sessions, "counts": _counts}
