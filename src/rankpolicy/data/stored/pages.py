"""Memory of files that are mapped: pages that were read are given back to the system now and then."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.padding import rows_of_queries

_MOST_BYTES = 1 << 25
_NUMBERS_AT_ONCE = 1 << 20
_FEW_NUMBERS = 1 << 20  # which are held in memory
# What the system maps around an address: up to a whole piece of its cache (measured on Linux 6.18).
_BYTES_PER_FAULT = 1 << 20


class MappedPages:
    """The pages of memory-mapped arrays that are read together, which stay in the memory of this process until they are released.

    The system keeps them in its own cache as long as it has room, so that reading them again is cheap. Arrays that are not mapped have
    nothing to release.
    """

    def __init__(self, *arrays: Any) -> None:
        maps = [getattr(array, "_mmap", None) for array in arrays if isinstance(array, np.memmap)]
        self._maps: list[mmap.mmap] = [mapping for mapping in maps if mapping is not None]
        self._num_bytes = 0

    def touched(self, num_bytes: int, num_runs: int = 1) -> None:
        """Note that so many bytes were read or written, in at most so many runs of consecutive rows; release all pages when many were."""
        self._num_bytes += num_bytes + num_runs * _BYTES_PER_FAULT
        if self._num_bytes >= _MOST_BYTES:
            self.release()

    def release(self) -> None:
        """Give all pages back to the system."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for mapping in self._maps:
                mapping.madvise(mmap.MADV_DONTNEED)  # of a file that is shared: nothing written is lost
            self._num_bytes = 0


def blocks_of(numbers: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """All numbers in order, about a million at a time; pages of mapped ones are given back."""
    pages = MappedPages(numbers)
    for start in range(0, len(numbers), _NUMBERS_AT_ONCE):
        block = numbers[start : start + _NUMBERS_AT_ONCE]
        yield block
        pages.touched(block.nbytes)
    pages.release()


def num_runs(rows: NDArray[np.int64]) -> int:
    """In how many runs of consecutive rows of a file these rows are."""
    return 1 + int(np.count_nonzero(np.diff(rows) != 1))


def new_numbers(length: int, dtype: Any, *, folder_of: NDArray[Any] | None) -> NDArray[Any]:
    """Room for so many numbers: in a file without a name that is gone with them, or in memory where they are few.

    The file is made in the folder of the mapped array ``folder_of``; without one, or without room there, the numbers are in memory.
    """
    folder = folder_of.filename if isinstance(folder_of, np.memmap) else None
    if length > _FEW_NUMBERS and folder is not None and hasattr(os, "posix_fallocate"):
        with suppress(OSError), TemporaryFile(dir=Path(folder).parent) as file:
            # A full disk is an error here, not a crash at the first write.
            os.posix_fallocate(file.fileno(), 0, length * np.dtype(dtype).itemsize)
            return np.memmap(file, dtype, "r+", shape=(length,))
    return np.empty(length, dtype)


def numbers_of_rows(
    numbers: NDArray[Any] | range, rows: NDArray[np.int64], *, folder_of: NDArray[Any] | None
) -> NDArray[Any]:
    """The numbers of some rows; mapped where the rows are, because of data bigger than memory even one number per row is much.

    A range without a step stands for numbers that follow one another.
    """
    if isinstance(numbers, range) and numbers.start == 0:
        return rows
    if not isinstance(rows, np.memmap):
        return rows + numbers.start if isinstance(numbers, range) else numbers[rows]
    chosen = new_numbers(len(rows), np.int64 if isinstance(numbers, range) else numbers.dtype, folder_of=folder_of)
    pages = MappedPages(numbers)
    for row_block, chosen_block in zip(blocks_of(rows), blocks_of(chosen), strict=True):
        chosen_block[:] = row_block + numbers.start if isinstance(numbers, range) else numbers[row_block]
        pages.touched(chosen_block.nbytes)
    pages.release()
    return chosen


def first_of_range(numbers: NDArray[np.int64]) -> int | None:
    """The first of mapped numbers that follow one another, such as 3, 4, 5; None for others, and for an array in memory."""
    if not isinstance(numbers, np.memmap) or len(numbers) == 0:
        return None
    first = expected = int(numbers[0])
    for block in blocks_of(numbers):
        if not np.array_equal(block, np.arange(expected, expected + len(block))):
            return None
        expected += len(block)
    return first


_ROWS_AT_ONCE = 1 << 20


def stored_rows_of_queries(
    offsets: NDArray[np.int64], queries: NDArray[np.int64], *, folder_of: NDArray[Any]
) -> NDArray[np.int64]:
    """``rows_of_queries`` for data bigger than memory: many row numbers are mapped as well."""
    ends = np.cumsum(offsets[queries + 1] - offsets[queries])
    rows = new_numbers(int(ends[-1]), np.int64, folder_of=folder_of)
    pages, start = MappedPages(rows), 0
    for some in np.split(queries, np.searchsorted(ends, np.arange(_ROWS_AT_ONCE, ends[-1], _ROWS_AT_ONCE))):
        numbers = rows_of_queries(offsets, some)
        rows[start : start + len(numbers)] = numbers
        pages.touched(numbers.nbytes)
        start += len(numbers)
    pages.release()
    return rows
