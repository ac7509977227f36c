"""Quantiles of columns that do not fit in memory: a sketch that reads them once, block by block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
