"""Identical sessions of a table counted while they are still rows of the table, which is many times faster than reading each of them."""

from __future__ import annotations

from typing import Any

from rankpolicy.clicks.log.log_tables import COLUMNS, column_of
from rankpolicy.optional import require

_COUNT = "_count"
_LEAST_PENDING = 1_000_000  # rows that are gathered before they are merged


class CountedSessions:
    """Rows (query, items, clicks) of a table with their counts, in the order of their first occurrence.

    Parameters
    ----------
    names
        Names of columns that are called differently in the table.
    """

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names
        self._merged: Any = None
        self._pending: list[Any] = []

    def add(self, frame: Any) -> bool:
        """Count the rows of a frame; False, and nothing is counted, where a row may be malformed or is written as text.

        Parameters
        ----------
        frame
            Some rows of the table, in polars.
        """
        chosen = self._chosen(frame)
        if chosen is None or not _is_plain(chosen):
            return False
        known = self._merged if self._merged is not None else self._pending[0] if self._pending else None
        if known is not None and known.schema != {**chosen.schema, _COUNT: known.schema[_COUNT]}:
            return False
        polars = require("polars", "A table of clicks")
        keys = list(chosen.columns)
        self._pending.append(
            chosen.group_by(keys, maintain_order=True).agg(polars.len().cast(polars.Int64).alias(_COUNT))
        )
        if sum(map(len, self._pending)) > max(_LEAST_PENDING, 0 if self._merged is None else len(self._merged)):
            self._merge()
        return True

    def take(self) -> tuple[Any, Any] | None:
        """The rows (a frame) and their counts (an array), which are then forgotten; None where there are none."""
        self._merge()
        merged, self._merged = self._merged, None
        return None if merged is None else (merged.drop(_COUNT), merged[_COUNT].to_numpy())

    def _merge(self) -> None:
        parts = ([] if self._merged is None else [self._merged]) + self._pending
        self._merged, self._pending = None, []
        if not parts:
            return
        polars = require("polars", "A table of clicks")
        joined = polars.concat(parts, rechunk=False)
        parts.clear()
        keys = [name for name in joined.columns if name != _COUNT]
        self._merged = joined.group_by(keys, maintain_order=True).agg(polars.col(_COUNT).sum())

    def _chosen(self, frame: Any) -> Any:
        columns = [column_of(name, list(frame.columns), self._names) for name in COLUMNS["sessions"]]
        return None if None in columns else frame.select(columns)


def _is_plain(frame: Any) -> bool:
    """Whether every row has a query, items with names and as many clicks, which are 0 or 1."""
    polars = require("polars", "A table of clicks")
    query, items, clicks = frame.iter_columns()
    names = (polars.String, *_whole(polars))
    if query.dtype not in names or items.dtype not in [polars.List(kind) for kind in names]:
        return False
    if clicks.dtype not in [polars.List(kind) for kind in _whole(polars)] or len(frame) == 0:
        return False
    if query.null_count() or items.null_count() or clicks.null_count():
        return False
    lengths = items.list.len()
    if lengths.min() == 0 or not (lengths == clicks.list.len()).all():
        return False
    flat_items, marks = items.explode(), clicks.explode()
    if flat_items.null_count() or marks.null_count() or marks.min() < 0 or marks.max() > 1:
        return False
    return flat_items.dtype != polars.String or not (flat_items == "").any()


def _whole(polars: Any) -> tuple[Any, ...]:
    return (
        polars.Int8,
        polars.Int16,
        polars.Int32,
        polars.Int64,
        polars.UInt8,
        polars.UInt16,
        polars.UInt32,
        polars.UInt64,
    )
