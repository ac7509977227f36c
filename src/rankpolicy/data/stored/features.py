"""Features of a dataset that stay on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.stored.pages import MappedPages
from rankpolicy.kernels import HAS_NUMBA

if TYPE_CHECKING:
    from rankpolicy.data.scaling import FeatureScaling

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
_BLOCK_ROWS = 65_536


class StoredFeatures:
    """Codes on disk in the place of an array (items, features): rows are decoded when they are read.

    Taking rows from it reads nothing: the result is of the same kind. ``np.asarray`` decodes all of its rows, a column by
    ``features[:, column]`` is an array.

    Parameters
    ----------
    codes
        The stored codes (stored rows, features), memory-mapped.
    values
        The value of each code in each feature (features, codes), in ascending order; NaN for codes that do not occur and, last, for a
        missing value.
    rows
        The stored rows that these features consist of, in order; None: all.
    pages
        The pages of the mapped file, where these features are a part of others.
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(
        self, codes: NDArray[Any], values: Floats, rows: Rows | None = None, pages: MappedPages | None = None
    ) -> None:
        self.codes = codes
        self.values = values
        self.rows = rows
        self.pages = MappedPages(codes) if pages is None else pages

    @property
    def shape(self) -> tuple[int, int]:
        """(items, features)"""
        return len(self), self.codes.shape[1]

    def __repr__(self) -> str:
        return f"StoredFeatures({self.shape[0]} x {self.shape[1]}, {self.codes.dtype.name})"

    def __len__(self) -> int:
        return len(self.codes) if self.rows is None else len(self.rows)

    def __getitem__(self, key: Any) -> Any:
        """Some rows, still on disk; ``[:, column]`` is an array, ``[row, column]`` a number."""
        if isinstance(key, tuple):
            rows, column = key
            if isinstance(rows, int | np.integer):
                return self[[int(rows)]][:, column][0]
            own = self[rows]
            return self.values[column][own.codes[:, column] if own.rows is None else own.codes[own.rows, column]]
        if isinstance(key, slice) and self.rows is None and key.step in (None, 1):
            return StoredFeatures(self.codes[key], self.values, None, self.pages)
        own_rows = np.arange(len(self), dtype=np.int64) if self.rows is None else self.rows
        return StoredFeatures(self.codes, self.values, own_rows[key], self.pages)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        decoded = CodeTable(self.values, np.arange(self.shape[1])).read(self)
        return decoded if dtype is None else decoded.astype(dtype)

    def blocks(self) -> Iterator[StoredFeatures]:
        """All rows in order, some thousands at a time."""
        for start in range(0, len(self), _BLOCK_ROWS):
            yield self[start : start + _BLOCK_ROWS]

    def codes_of_rows(self) -> NDArray[Any]:
        """The codes of all rows (items, features), in memory."""
        codes = np.array(self.codes if self.rows is None else self.codes[self.rows])
        self.pages.touched(codes.nbytes)
        return codes

    def counts(self) -> NDArray[np.int64]:
        """How often each code occurs in each feature (features, codes)."""
        num_features, num_codes = self.values.shape
        counts = np.zeros((num_features, num_codes), np.int64)
        for block in self.blocks():
            codes = block.codes_of_rows()
            if HAS_NUMBA:
                from rankpolicy.kernels.codes import count_codes

                count_codes(codes, counts)
            else:
                for feature, own in enumerate(codes.T):
                    counts[feature] += np.bincount(own, minlength=num_codes)
        return counts

    def mapped(self, function: Callable[[Floats], Floats]) -> StoredFeatures:
        """The features with an increasing function applied to all values.

        Parameters
        ----------
        function
            The function of an array of values.
        """
        return StoredFeatures(self.codes, function(self.values), self.rows, self.pages)


class CodeTable:
    """What stored codes are read as: any columns of which each is a function of one feature.

    Parameters
    ----------
    values
        The value of each code in each column (columns, codes).
    source
        The feature that each column is a function of (columns,).
    """

    def __init__(self, values: Floats, source: NDArray[np.int64]) -> None:
        self.values = np.ascontiguousarray(values)
        self.source = source

    @classmethod
    def scaled(cls, features: StoredFeatures, scaling: FeatureScaling) -> CodeTable:
        """Features as a scaling gives them, for a scaling that takes every value on its own: each code is scaled once.

        Parameters
        ----------
        features
            The stored features.
        scaling
            How they are scaled.
        """
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
        """The columns of all rows (items, columns), in memory.

        Parameters
        ----------
        features
            The stored rows.
        """
        if not HAS_NUMBA:
            return np.asarray(self.values[np.arange(len(self.source)), features.codes_of_rows()[:, self.source]])
        from rankpolicy.kernels.codes import values_of_rows

        rows = np.arange(len(features), dtype=np.int64) if features.rows is None else features.rows
        values = values_of_rows(features.codes, rows, self.values, self.source)
        features.pages.touched(len(rows) * features.codes.shape[1] * features.codes.itemsize)
        return values
