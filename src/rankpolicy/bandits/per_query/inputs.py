"""Names and clicks that come in: checked, and many plain lists of texts at once without a look at each of them in Python.

Functions that take the short way return None for anything that is not plain; slower checks then refuse it, or take it.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.per_query.keys import Keys, as_names
from rankpolicy.types import RankPolicyError

Shape = tuple[int, int]


def is_item(names: NDArray[Any]) -> NDArray[np.bool_]:
    """Which names are items; "" and -1 stand for no item, past the end of a list.

    >>> is_item(np.array([7, 0, -1])).tolist()
    [True, True, False]
    """
    if names.dtype.kind == "i" and (names < -1).any():
        raise RankPolicyError(f"numbers of items must be 0 or more, -1 past the end of a list; got {names.min()}.")
    return np.asarray(names != ("" if names.dtype.kind == "U" else -1))


def checked_names(items: ArrayLike) -> NDArray[Any]:
    """Names (item,) of the items to rank.

    >>> checked_names("red")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: items must be one list of names; got an array of shape (). Call once per query.
    """
    names = as_names(items)
    if names.ndim != 1:
        raise RankPolicyError(
            f"items must be one list of names; got an array of shape {names.shape}. Call once per query."
        )
    if not is_item(names).all():
        raise RankPolicyError('items must have names; got "" or -1, which stand for no item past the end of a list.')
    return names


def check_distinct(keys: Keys, is_shown: NDArray[np.bool_] | None = None) -> None:
    ordered = np.sort(keys if is_shown is None else np.where(is_shown, keys, np.uint64(0)), 1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != 0)).any():
        raise RankPolicyError("a list must hold each item once; got one twice.")


def check_ends(is_shown: NDArray[np.bool_]) -> None:
    if (is_shown[:, 1:] & ~is_shown[:, :-1]).any():
        raise RankPolicyError('-1 and "" must only come past the end of a list; got an item after one.')


def quick_list(names: ArrayLike) -> list[str]:
    """Names that may be texts, as a list; no names for what has to be looked at more closely."""
    if isinstance(names, list):
        return names
    return names.tolist() if isinstance(names, np.ndarray) and names.dtype.kind == "U" and names.ndim == 1 else []


def quick_marks(clicks: ArrayLike) -> NDArray[np.int8] | None:
    """Clicks as kernels read them; None for what has to be looked at more closely."""
    if isinstance(clicks, np.ndarray):
        clicks = clicks.tolist()
    try:
        marks = bytearray(clicks) if isinstance(clicks, list | tuple) else None
    except (TypeError, ValueError):
        return None
    if not marks or max(marks) > 1:
        return None
    return np.frombuffer(marks, np.int8)


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
