"""CSV files of features with one row per item."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.frames import from_frame
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.files import read_text_bytes
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError


@checked_kinds
def read_csv(
    path: str | os.PathLike[str],
    *,
    qid: str = "qid",
    label: str | None = "label",
    features: Sequence[str] | None = None,
    item_id: str | None = None,
    protected: str | None = None,
    ignore: Sequence[str] = (),
) -> RankingDataset:
    """Read a CSV file with a line of column names. An empty field is a missing value; columns of text are categories.

    Parameters
    ----------
    path
        The file, plain or compressed (.csv.gz, .csv.bz2, .csv.zst).
    qid
        Name of the column with the query id of each row; rows may be in any order.
    label
        Name of the column of labels; None for data still to be ranked.
    features
        Names of the feature columns; None: all remaining columns.
    item_id
        Name of the column of item ids; None: the column item_id if there is one.
    protected
        Name of the column of protected groups; None: the column group if there is one.
    ignore
        Names of columns to leave out.
    """
    frame = csv_frame(path)
    try:
        return from_frame(
            frame,
            qid=qid,
            label=label,
            features=features,
            item_id=item_id,
            protected=protected,
            ignore=ignore,
            text_is="categories",
        )
    except RankPolicyError as error:
        raise error.within(f"{path}") from None


def csv_columns(path: str | os.PathLike[str]) -> list[str]:
    """The names of the columns of a CSV file.

    Parameters
    ----------
    path
        The file, plain or compressed.
    """
    return list(_parsed(read_text_bytes(path).tobytes().partition(b"\n")[0], path).columns)


def csv_frame(path: str | os.PathLike[str]) -> Any:
    """A CSV file as a polars frame; types are found from all rows."""
    return _parsed(read_text_bytes(path).tobytes(), path)


def _parsed(text: bytes, path: str | os.PathLike[str]) -> Any:
    polars = require("polars", "A CSV file")
    try:
        return polars.read_csv(io.BytesIO(text), infer_schema_length=None)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise RankPolicyError(
            f"{path} must be a CSV file with a line of column names; it cannot be read ({error})."
        ) from None
