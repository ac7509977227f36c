"""Codes of features: values to codes, rows of codes to values, and how often each code occurs; data/stored/ has the readable references."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit

_BLOCK_ROWS = 256


def encode_columns(
    columns: NDArray[np.float32],
    cuts: NDArray[np.float32],
    num_cuts: NDArray[np.int64],
    codes: NDArray[Any],
    *,
    missing: int,
) -> None:
    """Write the code of each value: the number of cuts below it."""
    num_rows = columns.shape[1]
    num_blocks = (num_rows + _BLOCK_ROWS - 1) // _BLOCK_ROWS
    _encode(columns, cuts, num_cuts, missing, codes, num_tasks=num_blocks, nanoseconds=15 * columns.size)


@njit(parallel=True, nogil=True)
def _encode(columns, cuts, num_cuts, missing, codes):
    num_columns, num_rows = columns.shape
    for block in prange((num_rows + _BLOCK_ROWS - 1) // _BLOCK_ROWS):
        last = min(num_rows, (block + 1) * _BLOCK_ROWS)
        for column in range(num_columns):
            for row in range(block * _BLOCK_ROWS, last):
                value = columns[column, row]
                if np.isnan(value):
                    codes[row, column] = missing
                else:
                    low, high = 0, num_cuts[column]
                    while low < high:
                        middle = (low + high) >> 1
                        if cuts[column, middle] < value:
                            low = middle + 1
                        else:
                            high = middle
                    codes[row, column] = low


def values_of_rows(
    codes: NDArray[Any], rows: NDArray[np.int64], table: NDArray[np.float32], source: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The values (rows, columns) of some rows of codes."""
    values = np.empty((len(rows), len(table)), np.float32)
    num_blocks = (len(rows) + _BLOCK_ROWS - 1) // _BLOCK_ROWS
    _decode(codes, rows, table, source, values, num_tasks=num_blocks, nanoseconds=1.5 * values.size)
    return values


@njit(parallel=True, nogil=True)
def _decode(codes, rows, table, source, values):
    last = table.shape[1] - 1  # a code beyond it, from a damaged file, reads as missing
    for block in prange((len(rows) + _BLOCK_ROWS - 1) // _BLOCK_ROWS):
        for place in range(block * _BLOCK_ROWS, min(len(rows), (block + 1) * _BLOCK_ROWS)):
            row = rows[place]
            for column in range(len(source)):
                values[place, column] = table[column, min(codes[row, source[column]], last)]


@njit(nogil=True)
def count_codes(codes, counts):
    """Add to counts (features, codes) how often each code occurs in codes (rows, features)."""
    for row in range(codes.shape[0]):
        for feature in range(codes.shape[1]):
            counts[feature, codes[row, feature]] += 1
