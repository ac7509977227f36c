"""Reading click logs of every format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.log.from_dataset import click_log_of
from rankpolicy.clicks.log.log_tables import CLICK_TABLE, COLUMNS, checked_columns, layout_of, read_table_clicks
from rankpolicy.clicks.log.scanned_log import scan_click_log
from rankpolicy.clicks.log.ubi import read_ubi_clicks
from rankpolicy.clicks.log.yandex import read_yandex_clicks
from rankpolicy.data.click_table.table import read_click_table
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.types import RankPolicyError, unknown_name

FORMATS = ("yandex", "ubi", CLICK_TABLE, *COLUMNS)


@checked_kinds
def read_click_log(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    lenient: bool = False,
) -> ClickLog:
    """Read a click log from a file; plain, gzip (.gz), bzip2 (.bz2) or zstandard (.zst).

    Formats:

    - yandex: tab-separated rows of Yandex's relevance prediction challenge;
    - ubi: queries and events of User Behavior Insights as JSON lines (.ndjson, .jsonl), as OpenSearch exports them;
    - rows: a table with one row per item shown (session, query, item, position, clicked);
    - sessions: a table with one row per session (query, items, clicks), where items and clicks are lists;
    - counts: a table with one row per (query, item, position), with impressions and clicks;
    - click-table: what ``read_click_table`` reads.

    Parameters
    ----------
    path
        The file. Tables are .parquet or .csv. A folder of .parquet files is read block by block, as ``scan_click_log`` does.
    format
        yandex, ubi, rows, sessions, counts or click-table; by default guessed from the name and the columns.
    columns
        Names of columns that are called differently in the file: ``{"item": "document"}``.
    lenient
        Skip and count malformed rows (where they spoil a session, the whole session) instead of raising an error.
    """
    if format is not None and format not in FORMATS:
        raise RankPolicyError(unknown_name("format", format, FORMATS))
    names = checked_columns(columns)
    if os.path.isdir(path):
        if format not in (None, *COLUMNS):
            raise RankPolicyError(
                f"a folder must hold Parquet files of the format {', '.join(COLUMNS)}; got {format!r}."
            )
        return scan_click_log(path, columns=names, lenient=lenient)
    chosen = format or _guessed(path, names)
    if chosen == "yandex":
        return read_yandex_clicks(path, lenient=lenient)
    if chosen == "ubi":
        return read_ubi_clicks(path, lenient=lenient)
    if chosen == CLICK_TABLE:
        if lenient:
            raise RankPolicyError(
                "a click table cannot be read with lenient: leave it out, and correct malformed rows."
            )
        return click_log_of(read_click_table(path, columns=columns, side=()))
    return read_table_clicks(path, layout=chosen, columns=names, lenient=lenient)


def _guessed(path: str | os.PathLike[str], names: Mapping[str, str]) -> str:
    suffixes = Path(path).suffixes
    if any(suffix in (".ndjson", ".jsonl") for suffix in suffixes):
        return "ubi"
    is_table = any(suffix in (".parquet", ".csv") for suffix in suffixes)
    return layout_of(path, names) if is_table else "yandex"
