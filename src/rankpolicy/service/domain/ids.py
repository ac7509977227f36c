"""Ids that sort by the time at which they were made: a database appends them, where random ids would land all over its index."""

from __future__ import annotations

import os
import time
from collections import deque

_RANDOM_BYTES = 10
_AT_ONCE = 256
_drawn: deque[str] = deque()


def time_ordered_id() -> str:
    """32 hexadecimal digits: 12 of milliseconds since 1970, then 20 random ones (80 bits), so no id can be guessed.

    >>> len(time_ordered_id())
    32
    """
    try:
        random_digits = _drawn.pop()
    except IndexError:
        # Every call of the system gives other threads their turn, so many are drawn at once.
        digits, size = os.urandom(_RANDOM_BYTES * _AT_ONCE).hex(), 2 * _RANDOM_BYTES
        _drawn.extend(digits[start : start + size] for start in range(size, len(digits), size))
        random_digits = digits[:size]
    return f"{time.time_ns() // 1_000_000:012x}{random_digits}"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)  # two processes must not have the same digits
