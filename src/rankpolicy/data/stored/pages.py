"""Memory of files that are mapped: pages that were read are given back to the system now and then."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_BYTES = 1 << 25
_NUMBERS_AT_ONCE = 1 << 20
# What the system maps around an address: up to a whole piece of its cache (measured on Linux 6.18).
_BYTES_PER_FAULT = 1 << 20


class MappedPages:
    """The pages of a memory-mapped array, which stay in the memory of this process until they are released.

    The system keeps them in its own cache as long as it has room, so that reading them again is cheap.

    Parameters
    ----------
    array
        The array; one that is not mapped has nothing to release.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._map: mmap.mmap | None = getattr(array, "_mmap", None) if isinstance(array, np.memmap) else None
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
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)  # of a file that is shared: nothing written is lost
            self._num_bytes = 0


def first_of_range(numbers: NDArray[np.int64]) -> int | None:
    """The first of mapped numbers that follow one another, such as 3, 4, 5; None for others. Their pages are given back.

    Parameters
    ----------
    numbers
        The numbers; those of an array that is not mapped are not looked at.
    """
    if not isinstance(numbers, np.memmap) or len(numbers) == 0:
        return None
    first, pages = int(numbers[0]), MappedPages(numbers)
    for start in range(0, len(numbers), _NUMBERS_AT_ONCE):
        part = numbers[start : start + _NUMBERS_AT_ONCE]
        if not np.array_equal(part, np.arange(first + start, first + start + len(part))):
            return None
        pages.touched(part.nbytes)
    pages.release()
    return first
