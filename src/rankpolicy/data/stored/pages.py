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

_MOST_BYTES = 1 << 25
_NUMBERS_AT_ONCE = 1 << 20
_FEW_NUMBERS = 1 << 20  # which are held in memory
# What the system maps around an address: up to a whole piece of its cache (measured on Linux 6.18).
_BYTES_PER_FAULT = 1 << 20


class MappedPages:
    """The pages of memory-mapped arrays that are read together, which stay in the memory of this process until they are released.

    The system keeps them in its own cache as long as it has room, so that reading them again is cheap.

    Parameters
    ----------
    arrays
        The arrays; those that are not mapped have nothing to release.
    """

    def __init__(self, *arrays: Any) -> None:
        maps = [getattr(array, "_mmap", None) for array in arrays if isinstance(array, np.memmap)]
        self._maps: list[mmap.mmap] = [each for each in maps if each is not None]
        self._num_bytes = 0

    def touched(self, num_bytes: int, num_places: int = 1) -> None:
        """Note that so many bytes were read or written; release all pages when many were.

        Parameters
        ----------
        num_bytes
            How many bytes.
        num_places
            In how many different places of the file they are at most.
        """
        self._num_bytes += num_bytes + num_places * _BYTES_PER_FAULT
        if self._num_bytes >= _MOST_BYTES:
            self.release()

    def release(self) -> None:
        """Give all pages back to the system."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for each in self._maps:
                each.madvise(mmap.MADV_DONTNEED)  # of a file that is shared: nothing written is lost
            self._num_bytes = 0


def parts_of(numbers: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """All numbers in order, about a million at a time; pages of mapped ones are given back.

    Parameters
    ----------
    numbers
        The numbers, in memory or mapped.
    """
    pages = MappedPages(numbers)
    for start in range(0, len(numbers), _NUMBERS_AT_ONCE):
        part = numbers[start : start + _NUMBERS_AT_ONCE]
        yield part
        pages.touched(part.nbytes)
    pages.release()


def num_places(rows: NDArray[np.int64]) -> int:
    """In how many places of a file these rows are: rows that follow one another there are in one place.

    Parameters
    ----------
    rows
        Numbers of rows.
    """
    return 1 + int(np.count_nonzero(np.diff(rows) != 1))


def new_numbers(length: int, dtype: Any, *, beside: NDArray[Any] | None) -> NDArray[Any]:
    """Room for so many numbers: in a file without a name that is gone with them, or in memory where they are few.

    Parameters
    ----------
    length, dtype
        How many, and their type.
    beside
        A mapped array in whose folder the file is made. Without one, or without room there, the numbers are in memory.
    """
    folder = beside.filename if isinstance(beside, np.memmap) else None
    if length > _FEW_NUMBERS and folder is not None and hasattr(os, "posix_fallocate"):
        with suppress(OSError), TemporaryFile(dir=Path(folder).parent) as file:
            # A full disk is an error here, not a crash at the first write.
            os.posix_fallocate(file.fileno(), 0, length * np.dtype(dtype).itemsize)
            return np.memmap(file, dtype, "r+", shape=(length,))
    return np.empty(length, dtype)


def taken(numbers: NDArray[Any] | range, rows: NDArray[np.int64], *, beside: NDArray[Any] | None) -> NDArray[Any]:
    """The numbers of some rows; mapped where the rows are, because of data bigger than memory even one number per row is much.

    Parameters
    ----------
    numbers
        One number per row; a range without a step in place of numbers that follow one another.
    rows
        Which rows.
    beside
        See ``new_numbers``.
    """
    if isinstance(numbers, range) and numbers.start == 0:
        return rows
    if not isinstance(rows, np.memmap):
        return rows + numbers.start if isinstance(numbers, range) else numbers[rows]
    found = new_numbers(len(rows), np.int64 if isinstance(numbers, range) else numbers.dtype, beside=beside)
    pages = MappedPages(numbers)
    for part, own in zip(parts_of(rows), parts_of(found), strict=True):
        own[:] = part + numbers.start if isinstance(numbers, range) else numbers[part]
        pages.touched(own.nbytes)
    pages.release()
    return found


def first_of_range(numbers: NDArray[np.int64]) -> int | None:
    """The first of mapped numbers that follow one another, such as 3, 4, 5; None for others. Their pages are given back.

    Parameters
    ----------
    numbers
        The numbers; those of an array that is not mapped are not looked at.
    """
    if not isinstance(numbers, np.memmap) or len(numbers) == 0:
        return None
    first = expected = int(numbers[0])
    for part in parts_of(numbers):
        if not np.array_equal(part, np.arange(expected, expected + len(part))):
            return None
        expected += len(part)
    return first
