"""Codes of one or two bytes for the values of each feature.

Quantiles of columns that do not fit in memory: a sketch that reads them once, block by block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.display import frozen_value
from rankpolicy.kernels import HAS_NUMBA

_BLOCK_ROWS = 4096


class QuantileSketch:
    """Approximate quantiles of many columns, in memory that grows with the logarithm of the number of rows.

    Rows are gathered into blocks, and each column of a block is sorted. Two blocks of the same weight become one of twice the weight: they
    are merged, and every other value is kept. The rank of a value is off by a share of log2(blocks) / (2 * block_rows) at most, 0.15 %
    for 16 million rows, and typically by far less, because the values kept alternate between the odd and the even ones. The values of a
    column that has few different ones are known exactly.

    >>> sketch = QuantileSketch(1, block_rows=64)
    >>> for start in range(0, 10_000, 500):
    ...     sketch.add(np.arange(start, start + 500, dtype=np.float32)[None])
    >>> sketch.cuts(0, 4)
    array([2515.5, 5095.5, 7546.5], dtype=float32)
    """

    def __init__(self, num_columns: int, *, most_distinct: int = 255, block_rows: int = _BLOCK_ROWS) -> None:
        self.num_columns = num_columns
        self.most_distinct = most_distinct
        self._buffer = np.empty((num_columns, block_rows), np.float32)
        self._num_buffered = 0
        self._levels: list[NDArray[np.float32] | None] = []  # one sorted block (columns, block_rows) per power of two
        self._num_merges: list[int] = []
        self._distinct: list[NDArray[np.float32] | None] = [np.empty(0, np.float32)] * num_columns

    def add(self, columns: NDArray[np.float32]) -> None:
        """Read some more rows."""
        size, start = self._buffer.shape[1], 0
        while start < columns.shape[1]:
            num_taken = min(size - self._num_buffered, columns.shape[1] - start)
            self._buffer[:, self._num_buffered : self._num_buffered + num_taken] = columns[:, start : start + num_taken]
            self._num_buffered, start = self._num_buffered + num_taken, start + num_taken
            if self._num_buffered == size:
                block = np.sort(self._buffer, axis=1)  # NaN comes last
                self._note_distinct(block)
                self._carry(block)
                self._num_buffered = 0

    def distinct(self, column: int) -> NDArray[np.float32] | None:
        """The different values of a column in ascending order, without NaN; None where they are too many."""
        distinct_values = self._distinct[column]
        if distinct_values is None:
            return None
        all_values = _union(distinct_values, self._buffer[column, : self._num_buffered])
        return all_values if len(all_values) <= self.most_distinct else None

    def cuts(self, column: int, num_bins: int) -> NDArray[np.float32]:
        """Values that cut a column into bins of about equally many rows, ascending and different; at most ``num_bins - 1``."""
        blocks = [self._buffer[column, : self._num_buffered]]
        weights = [np.ones(self._num_buffered)]
        for level, block in enumerate(self._levels):
            if block is not None:
                blocks.append(block[column])
                weights.append(np.full(block.shape[1], 2.0**level))
        values, counts = np.concatenate(blocks), np.concatenate(weights)
        present = ~np.isnan(values)
        different, index_of_value = np.unique(values[present], return_inverse=True)
        totals = np.bincount(index_of_value, counts[present], len(different)).astype(np.float64)
        return _cuts(different, totals, num_bins)

    def _note_distinct(self, block: NDArray[np.float32]) -> None:
        for column, distinct_values in enumerate(self._distinct):
            if distinct_values is not None:
                all_values = _union(distinct_values, block[column])
                self._distinct[column] = all_values if len(all_values) <= self.most_distinct else None

    def _carry(self, block: NDArray[np.float32]) -> None:
        """Keep a block; where one of its weight is kept already, join the two to one of the next weight."""
        level = 0
        while True:
            if level == len(self._levels):
                self._levels.append(None)
                self._num_merges.append(0)
            waiting = self._levels[level]
            if waiting is None:
                self._levels[level] = block
                return
            both = np.concatenate([waiting, block], axis=1)
            both.sort(axis=1)
            block = both[:, self._num_merges[level] % 2 :: 2].copy()
            self._num_merges[level] += 1
            self._levels[level] = None
            level += 1


def _union(distinct_values: NDArray[np.float32], values: NDArray[np.float32]) -> NDArray[np.float32]:
    union = np.unique(np.concatenate([distinct_values, values]))
    return np.asarray(union[~np.isnan(union)])


def _cuts(values: NDArray[np.float32], weights: NDArray[np.float64], num_bins: int) -> NDArray[np.float32]:
    """Cuts between different values in ascending order: a value as frequent as a bin has a bin of its own, the others share the rest."""
    if len(values) <= num_bins:
        return values[:-1]
    is_heavy = np.zeros(len(values), bool)
    while True:
        share = weights[~is_heavy].sum() / max(1, num_bins - 2 * is_heavy.sum())
        is_heavy_now = is_heavy | (weights >= share)
        if (is_heavy_now == is_heavy).all() or 2 * is_heavy_now.sum() >= num_bins:
            break
        is_heavy = is_heavy_now
    bins = np.floor(np.cumsum(np.where(is_heavy, 0.0, weights)) / share + 1e-9)
    ends = np.flatnonzero(np.diff(bins) > 0 if len(bins) else []) + 1  # a value with which a bin is full
    ends = ends[(ends + 1 < len(values)) & ~is_heavy[ends]]
    # Halfway to the next value, so that a cut does not depend on which of two neighbours was kept.
    middle = ((values[ends].astype(np.float64) + values[ends + 1]) / 2).astype(np.float32)
    heavy = values[is_heavy]
    cuts = [
        np.where(middle < values[ends + 1], middle, values[ends]),
        np.nextafter(heavy, np.float32(-np.inf)),
        heavy,
    ]
    found_cuts = np.unique(np.concatenate(cuts))
    return np.asarray(found_cuts[(found_cuts >= values[0]) & (found_cuts < values[-1])][: num_bins - 1])


Floats = NDArray[np.float32]
MOST_CODES = {"uint8": 255, "uint16": 4095}  # of values; one more is the code of a missing value


@frozen_value()
class Cuts:
    """Where the values of each feature are cut into bins, each of which has one code."""

    cuts: Floats  # Ascending cuts (features, most cuts), filled up with infinity. A value has as its code the number of cuts below it
    num_cuts: NDArray[np.int64]  # How many cuts each feature has (features,)
    dtype: np.dtype[Any]  # Type of the codes, uint8 or uint16

    @classmethod
    def of_sketch(cls, sketch: QuantileSketch, dtype: str) -> Cuts:
        """The cuts into bins of about equally many rows; where a feature has few different values, each has its own bin."""
        chosen = []
        for column in range(sketch.num_columns):
            values = sketch.distinct(column)
            chosen.append(sketch.cuts(column, MOST_CODES[dtype]) if values is None else values[:-1])
        num_cuts = np.array([len(cuts) for cuts in chosen], np.int64)
        padded = np.full((len(chosen), max(1, int(num_cuts.max(initial=1)))), np.inf, np.float32)
        for row, cuts in zip(padded, chosen, strict=True):
            row[: len(cuts)] = cuts
        return cls(padded, num_cuts, np.dtype(dtype))

    @property
    def num_codes(self) -> int:
        """How many codes values can have; the next number is the code of a missing value."""
        return int(self.num_cuts.max(initial=0)) + 1

    def codes(self, columns: Floats) -> NDArray[Any]:
        """The codes (rows, features) of values (features, rows).

        >>> cuts = Cuts(np.array([[0.0, 2.0]], np.float32), np.array([2]), np.dtype("uint8"))
        >>> cuts.codes(np.array([[-1.0, 0.0, 0.5, 3.0, np.nan]], np.float32))[:, 0]
        array([0, 0, 1, 2, 3], dtype=uint8)
        """
        codes = np.empty(columns.shape[::-1], self.dtype)
        if HAS_NUMBA:
            from rankpolicy.kernels.stored_codes import encode_columns

            encode_columns(np.ascontiguousarray(columns), self.cuts, self.num_cuts, codes, missing=self.num_codes)
            return codes
        for column, (values, cuts, count) in enumerate(zip(columns, self.cuts, self.num_cuts, strict=True)):
            bins = np.searchsorted(cuts[:count], values)
            codes[:, column] = np.where(np.isnan(values), self.num_codes, bins)
        return codes


class BinMeans:
    """The mean of the values that have each code, over rows that come in blocks: what a code stands for."""

    def __init__(self, num_features: int, num_codes: int) -> None:
        self._sums = np.zeros((num_features, num_codes))
        self._counts = np.zeros((num_features, num_codes), np.int64)

    def add(self, columns: Floats, codes: NDArray[Any]) -> None:
        """Count some more rows."""
        size = self._sums.shape[1]
        for feature, values in enumerate(columns):
            present = ~np.isnan(values)
            present_codes, present_values = codes[:, feature], values
            if not present.all():
                present_codes, present_values = present_codes[present], values[present]
            self._sums[feature] += np.bincount(present_codes, weights=present_values, minlength=size)
            self._counts[feature] += np.bincount(present_codes, minlength=size)

    def values(self) -> Floats:
        """The value of each code (features, codes + 1): its mean, and NaN for codes that do not occur and for missing values."""
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (self._sums / self._counts).astype(np.float32)
        return np.concatenate([means, np.full((len(means), 1), np.nan, np.float32)], axis=1)
