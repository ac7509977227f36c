"""Reading click logs of every format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rankpolicy.clicks.log.click_log import ClickLog, coded, padded_log
from rankpolicy.clicks.log.log_tables import CLICK_TABLE, COLUMNS, checked_columns, layout_of, read_table_clicks
from rankpolicy.clicks.log.scanned_log import scan_click_log
from rankpolicy.clicks.log.ubi import read_ubi_clicks
from rankpolicy.clicks.log.yandex import read_yandex_clicks
from rankpolicy.data.click_table.table import read_click_table
from rankpolicy.data.dataset import RankingDataset
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


@checked_kinds
def click_log_of(dataset: RankingDataset) -> ClickLog:
    """The click log of a dataset whose labels are clicks, such as one of ``read_click_table``.

    Queries are named by their text, or their id where there are no texts, so that sessions with the same text share a query; items
    are named by their id, or their text where there are no ids.

    Parameters
    ----------
    dataset
        Lists that were shown, with the position of every item.

    >>> from rankpolicy.data.click_table.table import from_click_table
    >>> import polars
    >>> rows = {"query_text": ["tea"] * 3, "item_text": ["pot", "cup", "pot"], "position": [2, 1, 1], "clicked": [1, 0, 1]}
    >>> log = click_log_of(from_click_table(polars.DataFrame({**rows, "session": [1, 1, 2]})))
    >>> log.item_names, log.items.tolist(), log.clicks.tolist()
    (('cup', 'pot'), [[0, 1], [1, -1]], [[0, 1], [1, 0]])
    """
    ranks = None if dataset.shown_by_query is None else dataset.shown_by_query.ranks
    if ranks is None:
        raise RankPolicyError(
            "a click log needs the position each item was shown at; the dataset has none. Read it from a table with a position column."
        )
    order = np.lexsort((ranks, dataset.query_numbers))
    expected = np.arange(dataset.num_items) - np.repeat(dataset.query_offsets[:-1], dataset.sizes) + 1
    is_wrong = ranks[order] != expected
    if is_wrong.any():
        item = int(order[np.argmax(is_wrong)])
        query = str(dataset.query_ids[dataset.query_numbers[item]])
        raise RankPolicyError(
            f"the items of a query must have been shown at positions 1, 2, 3, ... without a gap; query {query!r} has position "
            f"{int(ranks[item])} where {int(expected[np.argmax(is_wrong)])} was expected. "
            "Add the rows that are missing, or leave that query out."
        )
    query_names, queries = coded(
        dataset.query_ids.tolist() if dataset.texts_by_query is None else dataset.texts_by_query.queries
    )
    if dataset.item_ids_by_query is not None:
        item_names, items = coded(dataset.item_ids_by_query[order].tolist())
    elif dataset.texts_by_query is not None:
        item_names, items = coded(
            dataset.texts_by_query.distinct[index] for index in dataset.texts_by_query.of_item[order].tolist()
        )
    else:
        raise RankPolicyError("a click log needs names of items; the dataset has neither item ids nor texts.")
    return padded_log(query_names, item_names, queries, dataset.sizes, items, dataset.labels_by_query[order])
