"""Many lists of texts at once, without a look at each of them in Python; what is not that plain is left to slower checks."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Shape = tuple[int, int]


def flat_rows(rows: ArrayLike) -> tuple[list[Any], Shape] | None:
    """The values of a list of lists of one length, or of a matrix of texts, one after the other, and its shape; None for anything else.

    >>> flat_rows([["a", "b"], ["c", "d"]])
    (['a', 'b', 'c', 'd'], (2, 2))
    >>> flat_rows([["a", "b"], ["c"]]) is None
    True
    """
    if isinstance(rows, np.ndarray):
        return (rows.ravel().tolist(), rows.shape) if rows.ndim == 2 and rows.dtype.kind == "U" and rows.size else None
    if not isinstance(rows, list) or not rows or set(map(type, rows)) != {list}:
        return None
    lengths = set(map(len, rows))
    if len(lengths) != 1 or 0 in lengths:
        return None
    return list(chain.from_iterable(rows)), (len(rows), lengths.pop())


def flat_marks(clicks: ArrayLike, shape: Shape) -> NDArray[np.int8] | None:
    """Clicks of this shape, one after the other; None for what has to be looked at more closely.

    >>> flat_marks([[0, 1], [1, 0]], (2, 2)).tolist()
    [0, 1, 1, 0]
    >>> flat_marks([[0, 2]], (1, 2)) is None
    True
    """
    if isinstance(clicks, np.ndarray):
        if clicks.shape != shape or clicks.dtype.kind not in "biu" or not ((clicks == 0) | (clicks == 1)).all():
            return None
        return clicks.astype(np.int8).ravel()
    if not isinstance(clicks, list) or set(map(type, clicks)) != {list} or len(clicks) != shape[0]:
        return None
    if set(map(len, clicks)) != {shape[1]}:
        return None
    try:
        marks = np.frombuffer(bytearray(chain.from_iterable(clicks)), np.int8)
    except (TypeError, ValueError):
        return None
    return marks if ((marks == 0) | (marks == 1)).all() else None


def text_array(names: list[str]) -> NDArray[np.str_]:
    """Texts as an array. Texts of one length are copied all at once, in a fifth of the time that numpy takes for one after the other.

    >>> text_array(["ab", "cd"]).tolist()
    ['ab', 'cd']
    """
    length = len(names[0])
    together, ends = "\0".join(names), "\0" * (len(names) - 1)
    # All have one length where U+0000 stands between them and nowhere else, at equal distances.
    if not length or together.count("\0") != len(ends) or together[length :: length + 1] != ends:
        return np.array(names, np.str_)
    try:
        content = together.encode("utf-32-le" if np.little_endian else "utf-32-be")  # as numpy has texts in memory
    except UnicodeEncodeError:  # half of a pair of surrogates
        return np.array(names, np.str_)
    return np.ndarray(len(names), f"U{length}", content, strides=(4 * (length + 1),))
