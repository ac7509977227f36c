"""Logs for off-policy evaluation that are bigger than memory: Parquet files that are read in blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN
from rankpolicy.data.formats.table_files import parquet_blocks, parquet_errors, parquet_files, parquet_schema
from rankpolicy.declarations.arguments import checked_kinds, checked_path
from rankpolicy.display import short_repr
from rankpolicy.off_policy.log import OffPolicyLog, checked_roles, padded_lists
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

NEEDED = ("context", "items", "rewards")
_PROPENSITIES = ("propensities", "marginal_propensities", "list_propensity")
_LISTS = ("items", "rewards", "propensities", "marginal_propensities")
_WHOLE = ("context", "items")
_BLOCK_ROWS = 250_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedOffPolicyLog:
    """A log on disk, which ``estimate_policy_value`` reads block by block; made by ``scan_off_policy_log``.

    Parameters
    ----------
    files
        The Parquet files, in the order in which they are read.
    columns
        The column of each part of the log that the files have.
    num_rounds
        How many rounds they hold.
    num_positions
        Positions of the longest list.
    """

    files: tuple[Path, ...]
    columns: Mapping[str, str]
    num_rounds: int
    num_positions: int

    __repr__ = short_repr

    def __len__(self) -> int:
        return self.num_rounds

    def blocks(self) -> Iterator[OffPolicyLog]:
        """All rounds in order, some thousands at a time."""
        for file in self.files:
            schema = parquet_schema(file)
            columns = [_as_list(column, schema).alias(name) for name, column in self.columns.items()]
            for start, frame in parquet_blocks(file, columns, block_rows=_BLOCK_ROWS):
                try:
                    block = _block(frame, self.num_positions)
                except RankPolicyError as error:
                    raise RankPolicyError(f"{file}, in the block that starts with row {start + 1}: {error}") from None
                yield block


@checked_kinds
def scan_off_policy_log(
    path: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None
) -> ScannedOffPolicyLog:
    """The log of a Parquet file, or of all those in a folder, with one row per round, to be read block by block.

    Columns: context (a whole number), items, rewards and propensities or marginal_propensities (lists from the top, equally long), or
    list_propensity (a number); give the propensities that are known, as in ``OffPolicyLog``.

    Parameters
    ----------
    path
        The file, or a folder whose ``.parquet`` files are read in the order of their names.
    columns
        Names of columns that are called differently in the files: ``{"context": "query"}``.
    """
    polars = require("polars", "An off-policy log")
    files = tuple(parquet_files(Path(checked_path(path))))
    names = checked_roles(columns, (*NEEDED, *_PROPENSITIES))
    first = parquet_schema(files[0])
    columns_by_role = {name: names.get(name, name) for name in (*NEEDED, *_PROPENSITIES)}
    chosen = {name: column for name, column in columns_by_role.items() if column in first or name in (*NEEDED, *names)}
    if not any(name in chosen for name in _PROPENSITIES):
        raise RankPolicyError(
            f"{files[0]} must have a column propensities, marginal_propensities or list_propensity; it has {', '.join(first)}."
        )
    num_rounds = num_positions = 0
    for file in files:
        schema = parquet_schema(file)
        for name, column in chosen.items():
            if column not in schema:
                raise RankPolicyError(f"{file} must have the column {column!r} ({name}); it has {', '.join(schema)}.")
            kind, is_list = schema[column], isinstance(schema[column], polars.List | polars.Array)
            inner = kind.inner if is_list else kind
            is_whole = inner.is_integer()
            is_number = inner.is_numeric() or inner in (polars.Boolean, polars.Null)
            if is_list != (name in _LISTS) or not (is_whole if name in _WHOLE else is_number):
                needed = ("lists of " if name in _LISTS else "") + ("whole numbers" if name in _WHOLE else "numbers")
                raise RankPolicyError(f"{file}: the column {column!r} must hold {needed}; it holds {kind}.")
        with parquet_errors(file):
            lengths = _as_list(chosen["items"], schema).list.len().max()
            rows, longest = polars.scan_parquet(file).select(polars.len(), lengths.alias("longest")).collect().row(0)
        num_rounds, num_positions = num_rounds + rows, max(num_positions, longest or 0)
    if num_rounds == 0 or num_positions == 0:
        raise RankPolicyError(f"{path} must hold at least one round with at least one item; it holds none.")
    return ScannedOffPolicyLog(files=files, columns=chosen, num_rounds=num_rounds, num_positions=num_positions)


def _as_list(column: str, schema: Mapping[str, Any]) -> Any:
    """A column of a file; arrays, lists of one length, as lists."""
    polars = require("polars", "An off-policy log")
    kind = schema[column]
    return polars.col(column).arr.to_list() if isinstance(kind, polars.Array) else polars.col(column)


def _block(frame: Any, num_positions: int) -> OffPolicyLog:
    if any(frame[name].null_count() for name in frame.columns):
        empty = next(name for name in frame.columns if frame[name].null_count())
        raise RankPolicyError(f"every row must have a value for {empty}; one has none.")
    lengths = frame["items"].list.len().to_numpy()

    def padded(name: str, filling: float) -> NDArray[Any] | None:
        if name not in frame.columns:
            return None
        if not (frame[name].list.len().to_numpy() == lengths).all():
            raise RankPolicyError(f"{name} must have one entry for every item of its list; a row has another number.")
        flat = frame[name].explode(empty_as_null=False)
        if flat.null_count():
            raise RankPolicyError(f"{name} must hold numbers; one is missing.")
        # Items as 64 bits, so that OffPolicyLog sees those that do not fit into 32.
        dtype = np.int64 if name == "items" else np.float64
        return padded_lists(flat.to_numpy().astype(dtype, copy=False), lengths, filling, num_positions=num_positions)

    items, rewards = padded("items", NOT_SHOWN), padded("rewards", 0.0)
    assert items is not None
    assert rewards is not None
    list_propensities = "list_propensity" in frame.columns
    return OffPolicyLog(
        items=items,
        rewards=rewards,
        contexts=frame["context"].to_numpy(writable=True),
        propensities=padded("propensities", 1.0),
        marginal_propensities=padded("marginal_propensities", 1.0),
        list_propensities=frame["list_propensity"].to_numpy(writable=True) if list_propensities else None,
    )
