"""Parquet files with one row per item."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.frames import from_frame, to_frame
from rankpolicy.files import atomic_write, checked_file
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError


def read_parquet(
    path: str | os.PathLike[str],
    *,
    qid: str = "qid",
    label: str | None = "label",
    features: Sequence[str] | None = None,
    item_id: str | None = None,
    protected: str | None = None,
) -> RankingDataset:
    """Read a Parquet file with one row per item.

    Parameters
    ----------
    path
        The file.
    qid
        Name of the column with the query id of each row; rows may be in any order.
    label
        Name of the column of labels; None for data still to be ranked.
    features
        Names of the feature columns, which must be numbers without missing values; None: all remaining columns.
    item_id
        Name of the column of item ids; None: the column item_id if there is one.
    protected
        Name of the column of protected groups; None: the column group if there is one.
    """
    polars = require("polars", "A Parquet file")
    file = checked_file(path)
    try:
        frame = polars.read_parquet(file)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise _unreadable(file, error) from None
    try:
        return from_frame(frame, qid=qid, label=label, features=features, item_id=item_id, protected=protected)
    except RankPolicyError as error:
        raise RankPolicyError(f"{file}: {error}") from None


def parquet_columns(path: str | os.PathLike[str]) -> list[str]:
    """The names of the columns of a Parquet file, without reading the columns.

    Parameters
    ----------
    path
        The file.
    """
    polars = require("polars", "A Parquet file")
    file = checked_file(path)
    try:
        return list(polars.read_parquet_schema(file))
    except (polars.exceptions.PolarsError, OSError) as error:
        raise _unreadable(file, error) from None


def write_parquet(dataset: RankingDataset, path: str | os.PathLike[str]) -> None:
    """Write a dataset as Parquet; ``read_parquet`` returns the same values, but for the source rows.

    Parameters
    ----------
    dataset
        The dataset.
    path
        The file.
    """
    frame = to_frame(dataset)
    with atomic_write(path) as file:
        frame.write_parquet(file)


def _unreadable(file: Path, error: Exception) -> RankPolicyError:
    return RankPolicyError(f"{file} must be a Parquet file; it cannot be read ({error}).")
