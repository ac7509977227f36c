"""Features of a dataset that stay on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.stored.pages import MappedPages, blocks_of, num_runs, numbers_of_rows
from rankpolicy.kernels import HAS_NUMBA
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.data.scaling import FeatureScaling

Floats = NDArray[np.float32]
Rows = NDArray[np.int64] | slice
_ALL = slice(None)
_BLOCK_ROWS = 65_536
_SCATTERED_ROWS = 8192


class StoredFeatures:
    """Codes on disk in the place of an array (items, features): rows are decoded when they are read.

    Taking rows or columns from it reads nothing: the result is of the same kind. ``np.asarray`` decodes all of its rows;
    ``features[:, column]`` and ``features[row]`` are arrays. A copy in another process opens the same file.

    ``codes`` (stored rows, stored columns) are memory-mapped. ``values`` (features, codes) has the value of each code in ascending order,
    NaN for codes that do not occur and, last, for a missing value. ``rows`` are the stored rows in order: numbers, which may be mapped, or
    a slice without a step. ``columns`` has the stored column of each feature.
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(
        self,
        codes: NDArray[Any],
        values: Floats,
        rows: Rows = _ALL,
        columns: NDArray[np.int64] | None = None,
        pages: MappedPages | None = None,
    ) -> None:
        self.codes = codes
        self.values = values
        self.rows = slice(*rows.indices(len(codes))) if isinstance(rows, slice) else rows
        self.columns = np.arange(codes.shape[1]) if columns is None else columns
        self.pages = MappedPages(codes, rows) if pages is None else pages
        self._counts: NDArray[np.int64] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(items, features)"""
        return len(self), len(self.values)

    def __repr__(self) -> str:
        return f"StoredFeatures({self.shape[0]} x {self.shape[1]}, {self.codes.dtype.name})"

    def __len__(self) -> int:
        return self.rows.stop - self.rows.start if isinstance(self.rows, slice) else len(self.rows)

    def __reduce__(self) -> Any:
        if not isinstance(self.codes, np.memmap):
            return StoredFeatures, (self.codes, self.values, self.rows, self.columns)
        file = (str(self.codes.filename), self.codes.dtype.name, self.codes.shape)
        return _reopened, (*file, self.values, self.rows, self.columns)

    def __getitem__(self, key: Any) -> Any:
        """Some rows or columns, still on disk; ``[:, column]`` and ``[row]`` are arrays, ``[row, column]`` a number."""
        rows, columns = key if isinstance(key, tuple) else (key, _ALL)
        if isinstance(rows, int | np.integer):
            row = range(len(self))[rows]  # counts from the end where it is negative
            return np.asarray(self[row : row + 1])[0][columns]
        chosen = self if isinstance(rows, slice) and rows == _ALL else self._with_rows(rows)
        if isinstance(columns, int | np.integer):
            codes = chosen.codes[chosen.rows, chosen.columns[columns]]
            chosen.were_read()
            return chosen.values[columns][np.minimum(codes, chosen.values.shape[1] - 1)]
        if isinstance(columns, slice) and columns == _ALL:
            return chosen
        return StoredFeatures(chosen.codes, chosen.values[columns], chosen.rows, chosen.columns[columns], chosen.pages)

    def _with_rows(self, key: Any) -> StoredFeatures:
        rows: Rows
        if not isinstance(self.rows, slice):
            rows = numbers_of_rows(self.rows, key, folder_of=self.codes)
        elif isinstance(key, slice) and key.step in (None, 1):
            first, stop, _ = key.indices(len(self))
            rows = slice(self.rows.start + first, self.rows.start + max(first, stop))
        elif (
            isinstance(key, np.ndarray) and key.dtype.kind == "i" and all(block.min() >= 0 for block in blocks_of(key))
        ):
            highest = max((int(block.max()) for block in blocks_of(key)), default=-1)
            if highest >= len(self):
                raise IndexError(f"row {highest} is out of bounds for {len(self)} rows")
            stored_rows = range(self.rows.start, self.rows.stop)
            rows = numbers_of_rows(stored_rows, key.astype(np.int64, copy=False), folder_of=self.codes)
        else:
            rows = self.rows.start + np.arange(len(self), dtype=np.int64)[key]
        # A view of mapped rows shares the pages of the array it is a view of.
        is_new = isinstance(rows, np.memmap) and not isinstance(key, slice)
        return StoredFeatures(self.codes, self.values, rows, self.columns, None if is_new else self.pages)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        decoded = CodeTable(self.values, np.arange(len(self.values))).read(self)
        return decoded if dtype is None else decoded.astype(dtype)

    def blocks(self) -> Iterator[StoredFeatures]:
        """All rows in order, some thousands at a time."""
        for start in range(0, len(self), _BLOCK_ROWS):
            yield self[start : start + _BLOCK_ROWS]

    def row_numbers(self) -> NDArray[np.int64]:
        """The stored rows (items,)."""
        return np.arange(self.rows.start, self.rows.stop) if isinstance(self.rows, slice) else self.rows

    def were_read(self) -> None:
        """Note that all rows were read, of which a page holds all columns: pages are given back when many were."""
        runs = 1 if isinstance(self.rows, slice) else num_runs(self.rows)
        self.pages.touched(len(self) * self.codes.shape[1] * self.codes.itemsize, runs)

    def stored_codes(self) -> NDArray[Any]:
        """The codes of all rows in all stored columns (items, stored columns); mapped where rows follow one another."""
        if isinstance(self.rows, slice):
            return np.asarray(self.codes[self.rows])
        codes = np.empty((len(self), self.codes.shape[1]), self.codes.dtype)
        # Few at a time: rows here and there may lie in all pages of the file.
        for start in range(0, len(self), _SCATTERED_ROWS):
            block = self[start : start + _SCATTERED_ROWS]
            # Without "clip", numpy would copy twice; no row is beyond the last.
            np.take(self.codes, block.rows, 0, out=codes[start : start + len(block)], mode="clip")
            block.were_read()
        return codes

    def codes_of_rows(self) -> NDArray[Any]:
        """The codes of all rows (items, features), in memory; no code is beyond those that have a value."""
        codes = self.stored_codes()
        self.were_read()
        return np.asarray(np.minimum(codes[:, self.columns], self.codes.dtype.type(self.values.shape[1] - 1)))

    def counts(self) -> NDArray[np.int64]:
        """How often each code occurs in each feature (features, codes); counted once."""
        if self._counts is not None:
            return self._counts
        num_features, num_codes = self.values.shape
        counts = np.zeros((num_features, num_codes), np.int64)
        for block in self.blocks():
            codes = block.codes_of_rows()
            if HAS_NUMBA:
                from rankpolicy.kernels.stored_codes import count_codes

                count_codes(codes, counts)
            else:
                for feature, feature_codes in enumerate(codes.T):
                    counts[feature] += np.bincount(feature_codes, minlength=num_codes)
        self._counts = counts
        return counts

    def mapped(self, function: Callable[[Floats], Floats]) -> StoredFeatures:
        """The features with an increasing function applied to all values."""
        return StoredFeatures(self.codes, function(self.values), self.rows, self.columns, self.pages)


def _reopened(
    path: str, dtype: str, shape: tuple[int, int], values: Floats, rows: Rows, columns: NDArray[np.int64]
) -> StoredFeatures:
    """The features of a file that another process had open."""
    try:
        codes = np.memmap(path, dtype, "r", shape=shape)
    except (OSError, ValueError):
        raise RankPolicyError(
            f"there are no stored features at {path}. Other machines need the cache on a path that all of them have: name it with cache=."
        ) from None
    return StoredFeatures(codes, values, rows, columns)


class CodeTable:
    """What stored codes are read as: any columns of which each is a function of one feature.

    ``values`` (columns, codes) has the value of each code, ``source`` (columns,) the feature that each column is a function of.
    """

    def __init__(self, values: Floats, source: NDArray[np.int64]) -> None:
        self.values = np.ascontiguousarray(values)
        self.source = source

    @classmethod
    def scaled(cls, features: StoredFeatures, scaling: FeatureScaling) -> CodeTable:
        """Features as a scaling gives them, for a scaling that takes every value on its own: each code is scaled once."""
        num_features = features.shape[1]
        scaled = scaling.apply(np.ascontiguousarray(features.values.T))
        source = [*range(num_features)]
        if scaling.encoding is None:
            source *= scaled.shape[1] // num_features
        else:
            source *= (scaled.shape[1] - scaling.encoding.num_extra) // num_features
            source += np.flatnonzero(scaling.encoding.indicators).tolist()
        return cls(scaled.T, np.array(source, np.int64))

    def read(self, features: StoredFeatures) -> Floats:
        """The columns of all rows (items, columns), in memory."""
        if not HAS_NUMBA:
            return np.asarray(self.values[np.arange(len(self.source)), features.codes_of_rows()[:, self.source]])
        from rankpolicy.kernels.stored_codes import values_of_rows

        rows = features.row_numbers()
        values = values_of_rows(features.codes, rows, self.values, features.columns[self.source])
        features.were_read()
        return values
