"""Parquet files that stay on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.frames import frame_names, frame_numbers, listed
from rankpolicy.data.formats.table_files import parquet_blocks, parquet_files, parquet_schema
from rankpolicy.data.stored.scan import Block, StoredAs, scanned
from rankpolicy.declarations.arguments import checked_kinds, checked_path
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

_BLOCK_ROWS = 65_536


@checked_kinds
def scan_parquet(
    path: str | os.PathLike[str],
    *,
    qid: str = "qid",
    label: str | None = "label",
    features: Sequence[str] | None = None,
    item_id: str | None = None,
    protected: str | None = None,
    ignore: Sequence[str] = (),
    stored_as: StoredAs = "uint8",
    cache: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> RankingDataset:
    """A dataset of a Parquet file, or of all those in a folder, whose features stay on disk.

    The files are read twice, in blocks: once for the quantiles of each feature, once to write a code for each value into a cache. Training
    and ranking then read the rows they need. Queries, ids and groups are in memory. The next scan of files with the same content
    opens the cache.

    Networks and trees learn from such a dataset as from any other, as do ``evaluate``, ``predict`` and ``split_queries``. Linear rankers,
    and scalings that look at whole queries, read all features into memory.

    Parameters
    ----------
    path
        The file, or a folder whose ``.parquet`` files are read in the order of their names.
    qid
        Name of the column with the query id of each row; rows may be in any order, also over several files.
    label
        Name of the column of labels; None for data still to be ranked.
    features
        Names of the feature columns, numbers; None: all remaining columns.
    item_id
        Name of the column of item ids, which are kept in memory; None: none, and a column item_id is left out.
    protected
        Name of the column of protected groups; None: the column group if there is one.
    ignore
        Names of columns to leave out.
    stored_as
        Type of the stored features. "uint8": one byte per value, up to 255 different values per feature, as LightGBM has them by default;
        "uint16": two bytes, up to 4,095; "float32": the values themselves, of which a part, as of ``split_queries``, is in memory. A
        feature with no more different values than codes is stored exactly, else a value is replaced by the mean of its quantile bin.
    cache
        Folder of the cache; None: ``$XDG_CACHE_HOME/rankpolicy`` or ``~/.cache/rankpolicy``. It may be removed at any time.
    progress
        Whether to show progress on stderr.
    """
    files = parquet_files(Path(path))
    protected = "group" if protected is None and "group" in parquet_schema(files[0]) else protected
    roles: dict[str, str | None] = {"qid": qid, "label": label, "item_id": item_id, "protected": protected}
    source = _ParquetFiles(files, _chosen_features(files, roles, features, ignore), roles)
    folder = None if cache is None else Path(checked_path(cache))
    return scanned(source, stored_as=stored_as, cache=folder, progress=progress)


@dataclass(frozen=True, slots=True)
class _ParquetFiles:
    files: tuple[Path, ...]
    feature_names: tuple[str, ...]
    roles: dict[str, str | None]

    @property
    def reading(self) -> dict[str, Any]:
        return {"format": "parquet", "features": list(self.feature_names), **self.roles}

    def blocks(self) -> Iterator[Block]:
        columns = dict.fromkeys(
            [*self.feature_names, *(column for column in self.roles.values() if column is not None)]
        )
        for file in self.files:
            for _, frame in parquet_blocks(file, list(columns), block_rows=_BLOCK_ROWS):
                try:
                    block = self._block(frame)
                except RankPolicyError as error:
                    raise error.within(f"{file}") from None
                yield block

    def _block(self, frame: Any) -> Block:
        columns = np.empty((len(self.feature_names), len(frame)), np.float32)
        with np.errstate(over="ignore"):  # infinity is reported by the scan
            for feature_index, name in enumerate(self.feature_names):
                columns[feature_index] = frame[name].to_numpy()
        names: dict[str, NDArray[Any] | None] = {
            role: None if column is None else frame_names(frame, column, role).astype(str)
            for role, column in self.roles.items()
            if role != "label"
        }
        label = self.roles["label"]
        assert names["qid"] is not None
        return Block(
            columns=columns,
            labels=None if label is None else frame_numbers(frame, label, "label"),
            query_ids=names["qid"],
            item_ids=names["item_id"],
            groups=names["protected"],
        )


def _chosen_features(
    files: Sequence[Path], roles: dict[str, str | None], features: Sequence[str] | None, ignore: Sequence[str]
) -> tuple[str, ...]:
    """The feature columns, if all files have them and they are numbers."""
    first = parquet_schema(files[0])
    for role, column in roles.items():
        if column is not None and column not in first:
            is_label = role == "label"
            raise RankPolicyError(
                f"{files[0]} must have the {role} column {column!r}; it has {listed(list(first))}.",
                python="For data still to be ranked pass label=None." if is_label else f"Name it with {role}=.",
                command_line="Data still to be ranked may come without labels in 'rankpolicy predict'."
                if is_label
                else f"Name it with --{role}.",
            )
    strangers = [name for name in (*ignore, *(features or ())) if name not in first]
    if strangers:
        raise RankPolicyError(f"{files[0]} must have the columns {listed(strangers)}; it has {listed(list(first))}.")
    feature_columns = [
        name for name in first if name not in roles.values() and name not in ignore and name != "item_id"
    ]
    chosen = tuple(feature_columns if features is None else features)
    if not chosen:
        raise RankPolicyError(f"{files[0]} must have at least one feature column; it has {listed(list(first))}.")
    for file in files:
        _check_columns_of_file(file, files[0], chosen, [column for column in roles.values() if column is not None])
    return chosen


def _check_columns_of_file(file: Path, first_file: Path, features: Sequence[str], role_columns: Sequence[str]) -> None:
    """Refuse a file that lacks a column of the first one, has another type there, or has features that are no numbers."""
    schema, first = parquet_schema(file), parquet_schema(first_file)
    for name in (*features, *role_columns):
        if name not in schema:
            raise RankPolicyError(f"{file} must have the columns of {first_file}; it has no {name!r}.")
    for column in role_columns:
        if schema[column] != first[column]:
            raise RankPolicyError(
                f"{file}: column {column!r} must be of the type that it has in {first_file}, {first[column]}; it is {schema[column]}."
            )
    for name in features:
        if not schema[name].is_numeric() and schema[name] != require("polars", "A Parquet file").Boolean:
            raise RankPolicyError(
                f"{file}: feature columns must be numbers; {name!r} is {schema[name]}. Leave it out (ignore=), or use read_parquet, "
                "which reads categories."
            )
