"""The rows of some queries of a dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.stored.pages import MappedPages, new_numbers

_ROWS_AT_ONCE = 1 << 20


def rows_of_queries(
    offsets: NDArray[np.int64], queries: NDArray[np.int64], *, folder_of: NDArray[Any] | None = None
) -> NDArray[np.int64]:
    """Rows of the items of these queries, query by query.

    >>> rows_of_queries(np.array([0, 2, 3, 6]), np.array([2, 0]))
    array([3, 4, 5, 0, 1])
    """
    ends = np.cumsum(offsets[queries + 1] - offsets[queries])
    num_rows = int(ends[-1]) if len(ends) else 0
    if num_rows <= _ROWS_AT_ONCE:
        return _numbers(offsets, queries)
    rows = new_numbers(num_rows, np.int64, folder_of=folder_of)
    pages, start = MappedPages(rows), 0
    for some in np.split(queries, np.searchsorted(ends, np.arange(_ROWS_AT_ONCE, num_rows, _ROWS_AT_ONCE))):
        numbers = _numbers(offsets, some)
        rows[start : start + len(numbers)] = numbers
        pages.touched(numbers.nbytes)
        start += len(numbers)
    pages.release()
    return rows


def _numbers(offsets: NDArray[np.int64], queries: NDArray[np.int64]) -> NDArray[np.int64]:
    sizes = offsets[queries + 1] - offsets[queries]
    before = np.cumsum(sizes) - sizes
    return np.repeat(offsets[queries] - before, sizes) + np.arange(int(sizes.sum()))
