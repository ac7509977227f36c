"""One door for click logs of every format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.log.from_dataset import click_log_of
from rankpolicy.clicks.log.table_files import COLUMNS, layout_of, read_table_clicks, table_columns
from rankpolicy.clicks.log.yandex import read_yandex_clicks
from rankpolicy.data.click_table.table import NEEDED, is_click_table, read_click_table
from rankpolicy.types import RankPolicyError, unknown_name

CLICK_TABLE = "click-table"
FORMATS = ("yandex", CLICK_TABLE, *COLUMNS)


def read_click_log(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    lenient: bool = False,
) -> ClickLog:
    """Read a click log of a format of FORMATS, guessed where it is not said: by its columns, or tab-separated Yandex rows.

    ``columns`` and ``lenient`` are those of ``read_table_clicks``; a click table, whose names are those of
    ``click_log_of``, takes the ``columns`` of ``read_click_table``.
    """
    if format is not None and format not in FORMATS:
        raise RankPolicyError(unknown_name("format", format, FORMATS))
    chosen = format or _guessed(path)
    if chosen == "yandex":
        return read_yandex_clicks(path, lenient=lenient)
    if chosen == CLICK_TABLE:
        if lenient:
            raise RankPolicyError("a click table is read whole: leave lenient out, and mend the rows that do not fit.")
        return click_log_of(read_click_table(path, columns=columns, side=()))
    return read_table_clicks(path, layout=chosen, columns=columns, lenient=lenient)


def _guessed(path: str | os.PathLike[str]) -> str:
    is_table = any(suffix in (".parquet", ".csv") for suffix in Path(path).suffixes)
    if not is_table:
        return "yandex"
    columns = table_columns(path)
    layout = layout_of(columns)
    if layout is None and is_click_table(columns):
        return CLICK_TABLE
    if layout is None:
        wanted = "; ".join(f"{name}: {', '.join(needed)}" for name, needed in {**COLUMNS, CLICK_TABLE: NEEDED}.items())
        raise RankPolicyError(
            f"{path} must have the columns of a click log ({wanted}); it has {', '.join(columns[:20])}."
        )
    return layout
