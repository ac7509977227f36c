"""One door for click logs of every format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rankpolicy.clicks.log import ClickLog
from rankpolicy.clicks.tables import COLUMNS, layout_of, read_table_clicks, table_columns
from rankpolicy.clicks.yandex import read_yandex_clicks
from rankpolicy.types import RankPolicyError, unknown_name

FORMATS = ("yandex", *COLUMNS)


def read_click_log(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    lenient: bool = False,
) -> ClickLog:
    """Read a click log of a format of FORMATS, guessed where it is not said: by its columns, or tab-separated Yandex rows.

    ``columns`` and ``lenient`` are those of ``read_table_clicks``.
    """
    if format is not None and format not in FORMATS:
        raise RankPolicyError(unknown_name("format", format, FORMATS))
    chosen = format or _guessed(path)
    if chosen == "yandex":
        return read_yandex_clicks(path, lenient=lenient)
    return read_table_clicks(path, layout=chosen, columns=columns, lenient=lenient)


def _guessed(path: str | os.PathLike[str]) -> str:
    is_table = any(suffix in (".parquet", ".csv") for suffix in Path(path).suffixes)
    if not is_table:
        return "yandex"
    columns = table_columns(path)
    layout = layout_of(columns)
    if layout is None:
        wanted = "; ".join(f"{name}: {', '.join(needed)}" for name, needed in COLUMNS.items())
        raise RankPolicyError(
            f"{path} must have the columns of a click log ({wanted}); it has {', '.join(columns[:20])}."
        )
    return layout
