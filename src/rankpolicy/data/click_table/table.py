"""Click tables: one row per item shown, with its texts, side columns, the rank at which it was shown, and whether it was clicked."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.click_table.columns import FEATURE, ClickColumns, as_polars, inferred_kinds
from rankpolicy.data.click_table.list_columns import Shown
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.table_files import is_parquet, table_columns, table_frame
from rankpolicy.data.texts.texts import Texts
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.files import checked_file, read_text_bytes
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError, unknown_name

# The roles that columns of a click table may have; all other columns are side columns.
NEEDED = ("query_text", "item_text")
ROLES = (*NEEDED, "session", "item_id", "position", "clicked", "timestamp", "user")
_TEXT_ROLES = ("query_text", "item_text", "session", "item_id", "user")


@checked_kinds
def from_click_table(
    frame: Any,
    *,
    columns: Mapping[str, str] | None = None,
    side: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    needs_clicks: bool = True,
) -> RankingDataset:
    """A dataset from a pandas or polars frame with one row per item shown. Each session is a query, its items in the order shown.

    Columns: ``query_text``, ``item_text``, ``clicked`` (0 or 1, becomes the label), and where they are known ``position`` (from 1, or
    from 0 if one is 0), ``timestamp`` (seconds, or dates and times), ``user``, ``item_id`` and ``session``. Without ``session``, rows with
    the same query text, user and timestamp are one session. The time of a session is that of its earliest row.

    The dataset has ``label_kind`` "clicks". Weight it with ``weighted_by_propensity`` to learn without position bias.

    Parameters
    ----------
    frame
        A pandas or polars DataFrame.
    columns
        The columns that have other names: ``{"query_text": "q"}``.
    side
        The side columns to keep: numbers (also true and false), and texts as categories; values may be missing. By default all columns
        without a role.
    categories
        Side columns of numbers that are names, such as a shop number, to be read as categories.
    needs_clicks
        Whether ``clicked`` must be there; False for data still to be ranked.

    >>> import polars
    >>> table = polars.DataFrame(
    ...     {"query_text": ["tea", "tea"], "item_text": ["pot", "cup"], "position": [2, 1], "clicked": [1, 0], "price": [9.5, None]}
    ... )
    >>> dataset = from_click_table(table)
    >>> dataset, dataset.texts.distinct, dataset.side.numbers["price"]
    (RankingDataset(queries=1, items=2, features=0, texts, clicks 0..1), ('cup', 'pot'), array([9.5, nan], dtype=float32))
    """
    table = as_polars(frame)
    return _dataset(table, "the frame", lambda row: f"row {row}", columns, side, categories, needs_clicks)


@checked_kinds
def read_click_table(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    side: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    needs_clicks: bool = True,
) -> RankingDataset:
    """Read a click table; see ``from_click_table`` for its columns.

    A column of a CSV file holds numbers if all its values are numbers without leading zeros, or true and false; otherwise texts.

    Parameters
    ----------
    path
        A Parquet file (ending in .parquet) or a CSV file with a header, plain or compressed by gzip, bzip2 or zstandard.
    columns
        The columns that have other names: ``{"query_text": "q"}``.
    side
        The side columns to keep; by default all columns without a role.
    categories
        Side columns of numbers that are names, such as a shop number, to be read as categories.
    needs_clicks
        Whether ``clicked`` must be there; False for data still to be ranked.
    """
    file = checked_file(path)
    frame = table_frame(file, infer_types=False)
    if not is_parquet(file):
        _check_header(table_columns(file), str(file))
        names = [(columns or {}).get(role, role) for role in _TEXT_ROLES]
        frame = inferred_kinds(frame, keep_as_texts=[*names, *categories])

    def place_of(row: int) -> str:
        return f"{file}, row {row}" if is_parquet(file) else f"{file}, line {_line_of(file, row)}"

    return _dataset(frame, str(file), place_of, columns, side, categories, needs_clicks)


def is_click_table(columns: Sequence[object]) -> bool:
    """Whether a table with these columns is a click table: it has query_text and item_text."""
    return set(NEEDED) <= set(columns)


def _dataset(
    frame: Any,
    what: str,
    place_of: Callable[[int], str],
    columns: Mapping[str, str] | None,
    side: Sequence[str] | None,
    categories: Sequence[str],
    needs_clicks: bool,
) -> RankingDataset:
    side_names = _side_names(frame, what, dict(columns or {}), side, categories)
    table = ClickColumns(_with_roles(frame, what, dict(columns or {}), side_names, needs_clicks), place_of)
    query_texts = table.texts("query_text", "a text that is not empty")
    item_texts = table.texts("item_text", "a text that is not empty")
    names = {role: table.texts(role, "a name") for role in ("session", "user", "item_id") if table.has(role)}
    times = table.seconds("timestamp") if table.has("timestamp") else None
    ranks = table.ranks("position") if table.has("position") else None
    labels = table.clicks("clicked") if table.has("clicked") else np.zeros(len(frame), np.float32)

    keys = {"session": names["session"]} if "session" in names else {"query_text": query_texts}
    if "session" not in names:
        keys |= {"user": names["user"]} if "user" in names else {}
        keys |= {"timestamp": times} if times is not None else {}
    order, offsets = _sessions(keys, ranks)
    first = order[offsets[:-1]]
    for role, texts in (("query_text", query_texts), ("user", names.get("user"))):
        if "session" in names and texts is not None:
            _check_one_per_session(table, role, texts, order, offsets)
    if ranks is not None:
        _check_positions(table, ranks[order], order, offsets, by_session="session" in names)
    sessions = names.get("session")
    users, item_ids, side_columns = names.get("user"), names.get("item_id"), table.side(side_names, categories)
    has_shown = ranks is not None or users is not None or times is not None
    shown = Shown(
        ranks=None if ranks is None else ranks[order],
        users=None if users is None else _as_array(users, first),
        times=None if times is None else np.minimum.reduceat(times[order], offsets[:-1]),
    )
    return RankingDataset(
        features_by_query=np.empty((len(order), 0), np.float32),
        labels_by_query=labels[order],
        label_kind="clicks" if table.has("clicked") else "none",
        query_offsets=offsets,
        query_ids=np.arange(len(first)).astype(str) if sessions is None else _as_array(sessions, first),
        source_rows_by_query=order,
        item_ids_by_query=None if item_ids is None else _as_array(item_ids, order),
        texts_by_query=Texts.of(query_texts.gather(first).to_list(), item_texts.gather(order).to_list()),
        side_by_query=None if side_columns is None else side_columns.take(order),
        shown_by_query=shown if has_shown else None,
    )


def _side_names(
    frame: Any, what: str, named: dict[str, str], side: Sequence[str] | None, categories: Sequence[str]
) -> list[str]:
    """The columns to read as side columns."""
    unknown = [role for role in named if role not in ROLES]
    if unknown:
        raise RankPolicyError(f"columns: {unknown_name('column', unknown[0], ROLES)}")
    role_columns = {named.get(role, role) for role in ROLES}
    chosen = [name for name in frame.columns if name not in role_columns] if side is None else list(side)
    for option, names in (("side", chosen if side is None else side), ("categories", categories)):
        if isinstance(names, str):
            raise RankPolicyError(f"{option} must be a list of column names; got a text. Write [{names!r:.30}].")
        for name in names:
            if name in role_columns:
                raise RankPolicyError(
                    f"{option} must name side columns; {name!r} has a role of its own. Copy it to a column of another name."
                )
            if name not in frame.columns or name not in chosen:
                choices = frame.columns if option == "side" else chosen
                raise RankPolicyError(f"{what}, {option}: {unknown_name('column', name, choices)}")
    return chosen


def _with_roles(frame: Any, what: str, named: dict[str, str], side_names: list[str], needs_clicks: bool) -> Any:
    """The columns with a role, renamed to their roles, and the side columns."""
    polars = require("polars", FEATURE)
    if len(frame) == 0:
        raise RankPolicyError(f"{what} must hold at least one row; it is empty.")
    column_of_role = {}
    for role in ROLES:
        column = named.get(role, role)
        is_needed = role in NEEDED or role in named or (role == "clicked" and needs_clicks)
        if column not in frame.columns:
            if not is_needed:
                continue
            advice = f'Name another: columns={{"{role}": ...}}.'
            if role == "clicked":
                advice += " Data still to be ranked need none: needs_clicks=False."
            raise RankPolicyError(
                f"{what} must have the column {column!r}; it has {', '.join(frame.columns[:20])}. {advice}"
            )
        # A log without clicks yet may have an empty column.
        if role == "clicked" and not needs_clicks and frame[column].null_count() == len(frame):
            continue
        column_of_role[role] = column
    clash = [name for name in side_names if name in column_of_role]
    if clash:
        raise RankPolicyError(
            f"{what}: {clash[0]!r} is the name of a role that columns gives to {column_of_role[clash[0]]!r}; rename the side column."
        )
    return frame.select([polars.col(column).alias(role) for role, column in column_of_role.items()] + side_names)


def _sessions(keys: Mapping[str, Any], ranks: NDArray[np.int64] | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows by session in the order of first appearance, within a session by position; and where each session starts."""
    polars = require("polars", FEATURE)
    rows = polars.DataFrame(dict(keys)).with_row_index("_row")
    grouped = rows.group_by(list(keys), maintain_order=True).agg("_row")["_row"]
    sizes = grouped.list.len().to_numpy()
    order = grouped.explode().to_numpy().astype(np.int64)
    if ranks is not None:
        order = order[np.lexsort((ranks[order], np.repeat(np.arange(len(sizes)), sizes)))]
    return order, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _check_one_per_session(
    table: ClickColumns, role: str, texts: Any, order: NDArray[np.int64], offsets: NDArray[np.int64]
) -> None:
    ordered = texts.gather(order)
    of_first = texts.gather(np.repeat(np.minimum.reduceat(order, offsets[:-1]), np.diff(offsets)))
    differs = np.zeros(len(order), bool)
    differs[order] = (ordered != of_first).to_numpy()
    table.refuse(differs, role, "the same in all rows of a session")


def _check_positions(
    table: ClickColumns,
    ranks: NDArray[np.int64],
    order: NDArray[np.int64],
    offsets: NDArray[np.int64],
    *,
    by_session: bool,
) -> None:
    """No two items of a session at one position."""
    is_twice = np.zeros(len(order), bool)
    is_twice[order[1:]] = np.diff(ranks) == 0
    is_twice[order[offsets[:-1]]] = False
    advice = (
        ""
        if by_session
        else " (rows of the same query_text, user and timestamp; give a session column to tell them apart)"
    )
    table.refuse(is_twice, "position", f"another for each row of a session{advice}")


def _as_array(texts: Any, rows: NDArray[np.int64]) -> NDArray[Any]:
    return np.array(texts.gather(rows).to_list(), dtype=str)


def _check_header(names: list[str], what: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RankPolicyError(f"{what}: column names must differ; {twice!r} occurs more than once.")


def _line_of(file: Path, row: int) -> int:
    """The line on which a row of CSV starts; a quoted text may span several lines."""
    text = read_text_bytes(file).tobytes().decode("utf-8", "replace")
    records = csv.reader(io.StringIO(text, newline=""))
    for _ in islice(records, row + 1):
        pass
    return records.line_num + 1
