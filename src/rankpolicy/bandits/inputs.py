"""Checks of lists and clicks that come in. Kernels check nothing, so what passes here must be safe for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.arguments import as_array
from rankpolicy.types import RankPolicyError


def checked_items(items: ArrayLike, *, num_items: int, what: str) -> NDArray[np.int64]:
    """Item numbers (item,), each once.

    >>> checked_items([2, 5], num_items=4, what="available items")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: available items must be numbers from 0 to 3; got 5. New items enter with add_items.
    """
    values = as_array(what, items)
    if values.size == 0:
        return np.empty(0, np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise RankPolicyError(
            f"{what} must be one list of item numbers; got {values.dtype} of shape {values.shape}. "
            "Number your items from 0, np.flatnonzero(is_available) for a mask."
        )
    _check_known(values, num_items, what)
    if len(np.unique(values)) < len(values):
        raise RankPolicyError(f"{what} must hold each item once; got one twice in {values.tolist()}.")
    return np.array(values, np.int64)  # a copy, because kernels do not accept read-only arrays


def checked_log(
    rankings: ArrayLike, clicks: ArrayLike, *, num_items: int, cutoff: int
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Shown lists (list, position), -1 past their end, and clicks of the same shape."""
    lists, marks = as_array("rankings", rankings), as_array("clicks", clicks)
    if lists.ndim != 2 or marks.ndim != 2:
        raise RankPolicyError(
            f"rankings and clicks must be (list, position) in a log, (position,) each for one list; got {lists.shape} and {marks.shape}."
        )
    if lists.shape != marks.shape:
        raise RankPolicyError(
            f"a list must have as many clicks as items, 0 or 1 each; got items {lists.shape} and clicks {marks.shape} (list, position). "
            "Drop clicks on what was not shown."
        )
    if lists.size == 0:
        return np.empty((0, 0), np.int64), np.empty((0, 0), np.int8)
    if lists.shape[1] > cutoff:
        raise RankPolicyError(
            f"a list must have at most {cutoff} items, the cutoff; got {lists.shape[1]}. Cut it, or choose a larger cutoff."
        )
    if lists.dtype.kind not in "iu":
        raise RankPolicyError(f"a list must hold item numbers; got {lists.dtype}.")
    shown = lists >= 0
    if (shown[:, 1:] & ~shown[:, :-1]).any():
        raise RankPolicyError("-1 must only come past the end of a list; got an item after one.")
    if (lists < -1).any():
        raise RankPolicyError(f"a list must hold item numbers, 0 or more; got {lists.min()}.")
    _check_known(lists[shown], num_items, "a list")
    ordered = np.sort(lists, 1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        raise RankPolicyError("a list must hold each item once; got one twice.")
    if marks.dtype.kind not in "iufb":
        raise RankPolicyError(f"clicks must be 0 or 1; got {marks.dtype!s}.")
    is_mark = (marks == 0) | (marks == 1)
    if not is_mark.all():
        raise RankPolicyError(f"clicks must be 0 or 1; got {marks[~is_mark].flat[0]}.")
    if (marks[~shown] == 1).any():
        raise RankPolicyError("clicks must be on shown items; got one past the end of a list.")
    return np.array(lists, np.int64, order="C"), np.array(marks, np.int8, order="C")


def _check_known(values: NDArray[np.integer], num_items: int, what: str) -> None:
    unknown = values[(values < 0) | (values >= num_items)]
    if len(unknown):
        raise RankPolicyError(
            f"{what} must be numbers from 0 to {num_items - 1}; got {unknown[0]}. New items enter with add_items."
        )
