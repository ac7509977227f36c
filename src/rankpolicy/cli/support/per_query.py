"""``--per-query FILE``: the metrics of every query as a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rankpolicy.cli.support.output import check_can_write
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import polars

SUFFIXES = (".csv", ".parquet")


def check_per_query(path: Path, *, inputs: Mapping[str, Path | None]) -> None:
    """Refuse, before any work is done, a file of another kind, one that cannot be written, and one that is read.

    Parameters
    ----------
    path
        What ``--per-query`` names.
    inputs
        The files that are read, by the option that names each.
    """
    if path.suffix not in SUFFIXES:
        raise RankPolicyError(f"--per-query must end in {' or '.join(SUFFIXES)}; got {path.name!r}.")
    check_can_write(path, option="--per-query", inputs=inputs)


def write_per_query(frame: polars.DataFrame, path: Path) -> None:
    """Write the table as CSV or Parquet, as the name of the file ends.

    Parameters
    ----------
    frame
        The table.
    path
        The file, checked by ``check_per_query``.
    """
    from rankpolicy.files import atomic_write

    with atomic_write(path) as file:
        if path.suffix == ".csv":
            frame.write_csv(file)
        else:
            frame.write_parquet(file)
