"""Parquet and CSV files as polars frames: one way to read them, and to say what is wrong with them."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rankpolicy.files import checked_file, read_text_bytes
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Whether a table is read as Parquet; all others are read as CSV."""
    return Path(path).suffix == ".parquet"


def table_frame(path: str | os.PathLike[str], *, infer_types: bool = True, lenient: bool = False) -> Any:
    """A table as a frame. Types of CSV columns are inferred from all rows, or all are texts; ``lenient`` cuts rows that are too long."""
    file = checked_file(path)
    if is_parquet(file):
        with parquet_errors(file) as polars:
            return polars.read_parquet(file)
    polars, text = require("polars", "A CSV file"), read_text_bytes(file).tobytes()
    try:
        return polars.read_csv(text, infer_schema=infer_types, infer_schema_length=None, truncate_ragged_lines=lenient)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise RankPolicyError(
            f"{file} must be a CSV file; it cannot be read{_uneven_line(text)} ({str(error).splitlines()[0]}). "
            "Its first line must be the column names."
        ) from None


def table_columns(path: str | os.PathLike[str]) -> list[str]:
    """The names of the columns of a table, without reading its rows."""
    file = checked_file(path)
    if is_parquet(file):
        return list(parquet_schema(file))
    header = read_text_bytes(file).tobytes().partition(b"\n")[0].decode("utf-8", "backslashreplace")
    return next(csv.reader([header]), [])


def parquet_schema(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The type of each column."""
    file = checked_file(path)
    with parquet_errors(file) as polars:
        return dict(polars.read_parquet_schema(file))


def parquet_blocks(file: Path, columns: list[Any], *, block_rows: int) -> Iterator[tuple[int, Any]]:
    """The rows of a file as frames, each with the number of its first row.

    They are slices, because a stream of batches reads ahead without bound where they are used more slowly than they are read.
    """
    with parquet_errors(file) as polars:
        rows = polars.scan_parquet(file).select(columns)
        for start in range(0, rows.select(polars.len()).collect().item(), block_rows):
            yield start, rows.slice(start, block_rows).collect()


def parquet_files(path: Path) -> tuple[Path, ...]:
    """The file at a path, or the ``.parquet`` files of a folder in the order of their names."""
    if not os.path.isdir(path):  # also where a path is too long to ask for
        return (checked_file(path),)
    files = tuple(sorted(path.glob("*.parquet")))
    if not files:
        raise RankPolicyError(f"{path} must hold Parquet files; it has none that ends in .parquet.")
    return files


@contextmanager
def parquet_errors(file: Path) -> Iterator[Any]:
    """polars, whose errors within mean that the file is no Parquet file."""
    polars = require("polars", "A Parquet file")
    try:
        yield polars
    except (polars.exceptions.PolarsError, OSError) as error:
        raise unreadable(file, error) from None


def unreadable(file: Path, error: Exception) -> RankPolicyError:
    """The error of a file that is no Parquet file."""
    return RankPolicyError(f"{file} must be a Parquet file; it cannot be read ({error}).")


def _uneven_line(text: bytes) -> str:
    """Describe the first line of CSV whose number of fields differs from that of the header."""
    rows = csv.reader(text.decode("utf-8", "replace").splitlines())
    width = len(next(rows, []))
    line = next((rows.line_num for row in rows if row and len(row) != width), None)
    return "" if line is None else f": line {line} has another number of fields than the header, {width}"
