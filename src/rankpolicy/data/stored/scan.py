"""Two passes over files: quantiles of the features, then their codes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.stored.cache import (
    cache_key,
    default_folder,
    finish,
    new_cache,
    open_cache,
    room_for_codes,
    room_for_rows,
)
from rankpolicy.data.stored.codebook import MOST_CODES, BinMeans, Cuts, QuantileSketch
from rankpolicy.data.stored.features import StoredFeatures
from rankpolicy.data.stored.pages import MappedPages
from rankpolicy.display import frozen_value
from rankpolicy.heap import give_back_freed_memory
from rankpolicy.types import RankPolicyError, unknown_name


@frozen_value(kw_only=True)
class Block:
    """Some consecutive rows of the files."""

    columns: NDArray[np.float32]  # Feature values (features, rows), NaN where one is missing
    labels: NDArray[np.float32] | None  # One label per row; None for data still to be ranked
    query_ids: NDArray[Any]  # The query of each row
    item_ids: NDArray[Any] | None = None  # The id of each row, or None
    groups: NDArray[Any] | None = None  # The protected group of each row, or None


class Source(Protocol):
    """Files that can be read block by block."""

    @property
    def files(self) -> Sequence[Path]:
        """The files, in the order in which they are read."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, where the files have them."""

    @property
    def reading(self) -> dict[str, Any]:
        """How the files are read, as JSON: the same files read otherwise have another cache."""

    def blocks(self) -> Iterator[Block]:
        """All rows from the first to the last."""


StoredAs = Literal["uint8", "uint16", "float32"]
_SECONDS_BETWEEN_LINES = 2.0


def scanned(source: Source, *, stored_as: StoredAs, cache: Path | None, progress: bool) -> RankingDataset:
    """A dataset whose features are codes on disk; they are made if there is no cache of the same content yet."""
    if stored_as not in (*MOST_CODES, "float32"):
        raise RankPolicyError(unknown_name("type of stored features", stored_as, (*MOST_CODES, "float32")))
    folder = default_folder() if cache is None else cache.expanduser()
    before = _state_of(source)
    key = cache_key(source.files, source.reading | {"stored_as": stored_as})
    stored = open_cache(folder, key)
    if stored is None:
        with new_cache(folder, key) as unfinished:
            _make(source, unfinished, stored_as, _Progress(progress))
            if _state_of(source) != before:
                raise RankPolicyError("the data changed while it was scanned. Scan it again.")
        give_back_freed_memory()
        stored = open_cache(folder, key)
        assert stored is not None
    codes, values, rows = stored
    # Codes stand in the place of an array; so does their type here.
    features = cast(NDArray[np.float32], codes if values is None else StoredFeatures(codes, values))
    dataset = RankingDataset(
        features_by_query=features,
        labels_by_query=rows["labels"],
        query_offsets=rows["offsets"],
        query_ids=rows["query_ids"],
        source_rows_by_query=rows["source_rows"],
        item_ids_by_query=rows.get("item_ids"),
        groups_by_query=rows.get("groups"),
        feature_names=source.feature_names,
        label_kind="grades" if bool(rows["has_labels"]) else "none",
    )
    MappedPages(rows["labels"]).release()
    return dataset


def _state_of(source: Source) -> list[tuple[int, int]]:
    return [(state.st_size, state.st_mtime_ns) for state in (file.stat() for file in source.files)]


def _make(source: Source, unfinished: Path, stored_as: StoredAs, progress: Callable[[str, int], None]) -> None:
    rows, sketch = _Rows(), None
    num_rows = 0
    for block in _with_rows(source):
        _check_finite(block, num_rows, source.feature_names)
        _check_labels(block, num_rows)
        rows.add(block)
        if stored_as != "float32":
            sketch = sketch or QuantileSketch(len(block.columns), most_distinct=MOST_CODES[stored_as])
            sketch.add(block.columns)
        num_rows += block.columns.shape[1]
        num_features = len(block.columns)
        progress("quantiles", num_rows)
    if num_rows == 0:
        raise RankPolicyError(f"{_named(source)}: the data has no rows.")
    cuts = None if sketch is None else Cuts.of_sketch(sketch, stored_as)
    means = None if cuts is None else BinMeans(num_features, cuts.num_codes)
    arrays = rows.arrays()
    codes = room_for_codes(unfinished, (num_rows, num_features), stored_as)
    labels, source_rows = room_for_rows(unfinished, num_rows)
    pages = MappedPages(codes, labels, source_rows)
    start = 0
    for block in _with_rows(source):
        stop = start + block.columns.shape[1]
        if stop > num_rows:
            raise RankPolicyError("the data changed while it was scanned. Scan it again.")
        if cuts is None or means is None:
            coded: NDArray[Any] = block.columns.T
        else:
            coded = cuts.codes(block.columns)
            means.add(block.columns, coded)
        row_indices = rows.places(start, stop)
        codes[row_indices] = coded
        source_rows[row_indices] = np.arange(start, stop)
        if block.labels is not None:
            labels[row_indices] = block.labels
        pages.touched(coded.nbytes)
        start = stop
        progress("codes", start)
    if start < num_rows:
        raise RankPolicyError("the data changed while it was scanned. Scan it again.")
    finish(unfinished, codes, None if means is None else means.values(), arrays)


class _Rows:
    """Where each row is stored: query by query. Rows of one query that follow one another in the files are a run; a query may have many."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._query_of_run: list[NDArray[np.int32]] = []
        self._size_of_run: list[NDArray[np.int64]] = []
        self._has_labels = False
        self._item_ids: list[NDArray[Any] | None] = []
        self._groups: list[NDArray[Any] | None] = []

    def add(self, block: Block) -> None:
        ids = block.query_ids
        starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in ids[starts].tolist()]
        self._query_of_run.append(np.array(numbers, np.int32))
        self._size_of_run.append(np.diff(starts, append=len(ids)))
        self._has_labels |= block.labels is not None
        self._item_ids.append(block.item_ids)
        self._groups.append(block.groups)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is known of queries, and ids and groups of rows; called once, after the last block."""
        queries, sizes = np.concatenate(self._query_of_run), np.concatenate(self._size_of_run)
        self._query_of_run.clear()
        self._size_of_run.clear()
        ends = np.cumsum(sizes)
        order = np.argsort(queries, kind="stable")
        self._first_rows = ends - sizes
        self._first_places = np.empty_like(ends)
        self._first_places[order] = np.cumsum(sizes[order]) - sizes[order]
        is_in_order = np.array_equal(self._first_rows, self._first_places)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(queries, sizes).astype(np.int64))])
        row_arrays = {
            "has_labels": np.array(self._has_labels),
            "offsets": offsets,
            "query_ids": np.array([str(name) for name in self._numbers]),
        }
        self._numbers.clear()
        if is_in_order:
            self._first_rows = self._first_places = ends[:0]
        for name, blocks in (("item_ids", self._item_ids), ("groups", self._groups)):
            values = _joined(blocks)
            if values is not None:
                row_arrays[name] = np.empty_like(values)
                row_arrays[name][self.places(0, len(values))] = values
        return row_arrays

    def places(self, start: int, stop: int) -> slice | NDArray[np.int64]:
        """Where rows of the files are stored, given the first of them and the one after the last."""
        if not len(self._first_rows):
            return slice(start, stop)
        rows = np.arange(start, stop)
        runs = np.searchsorted(self._first_rows, rows, side="right") - 1
        return self._first_places[runs] + (rows - self._first_rows[runs])


def _joined(blocks: list[NDArray[Any] | None]) -> NDArray[Any] | None:
    """All parts as one array; the parts are forgotten."""
    present_blocks = [block for block in blocks if block is not None]
    blocks.clear()
    return np.concatenate(present_blocks) if present_blocks else None


def _check_finite(block: Block, first_row: int, names: tuple[str, ...] | None) -> None:
    with np.errstate(invalid="ignore", over="ignore"):
        suspicious = not np.isfinite(block.columns.sum())  # NaN is a missing value; both are rare
    if not suspicious:
        return
    infinite = np.argwhere(np.isinf(block.columns))
    if len(infinite):
        column, row = infinite[0]
        name = f"feature {column}" if names is None else f"feature {names[column]!r}"
        raise RankPolicyError(
            f"features must be finite, or NaN where a value is missing; row {first_row + int(row)}, {name} is "
            f"{block.columns[column, row]}. Scale or clip values beyond 3.4e38, which float32 cannot hold."
        )


def _check_labels(block: Block, first_row: int) -> None:
    if block.labels is not None:
        good = np.isfinite(block.labels) & (block.labels >= 0)
        if not good.all():
            row = int(np.argmin(good))
            raise RankPolicyError(
                f"labels must be grades of relevance, finite and 0 or more; row {first_row + row} has {block.labels[row]:g}. "
                "Shift or map them to 0, 1, 2, ..."
            )


def _with_rows(source: Source) -> Iterator[Block]:
    return (block for block in source.blocks() if len(block.query_ids))


def _named(source: Source) -> str:
    return ", ".join(map(str, source.files[:3])) + (", ..." if len(source.files) > 3 else "")


class _Progress:
    """A line on stderr every few seconds."""

    def __init__(self, shown: bool) -> None:
        self._shown, self._start = shown, time.monotonic()
        self._last = self._start

    def __call__(self, what: str, num_rows: int) -> None:
        now = time.monotonic()
        if self._shown and now - self._last >= _SECONDS_BETWEEN_LINES:
            print(f"scan: {what} of {num_rows:,} rows ({now - self._start:.0f} s)", file=sys.stderr)
            self._last = now
