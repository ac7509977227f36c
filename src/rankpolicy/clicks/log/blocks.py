"""Rows divided among threads so that no two threads add to the same sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NUM_BLOCKS = 16  # fixed, so that sums do not depend on how many threads there are


def cut_at_changes(owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where to cut rows, sorted by owner, into at most NUM_BLOCKS blocks of about equal size (block + 1,); no owner is divided.

    >>> cut_at_changes(np.array([4, 4, 4, 7])).tolist()
    [0, 3, 4]
    """
    changes = np.append(np.flatnonzero(np.diff(owners)) + 1, len(owners))
    even = len(owners) * np.arange(1, NUM_BLOCKS + 1) // NUM_BLOCKS
    return np.unique(np.append(0, changes[np.searchsorted(changes, even)]))
