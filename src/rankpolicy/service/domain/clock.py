"""The time of the service, and ids that sort by the time at which they were made: a database appends them, where random ids would
land all over its index.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable

_RANDOM_BYTES = 10
_AT_ONCE = 256
_drawn: deque[str] = deque()


class Clock:
    """Microseconds since 1970 that advance with the monotonic clock, whatever happens to the clock of the machine.

    The wall clock is read once, at the start. A clock that stands before the last time in the database is not believed: time continues
    from there. So jumps of the wall clock neither reorder what is stored nor end a window early.

    >>> Clock(not_before=5_000_000, wall=lambda: 0, monotonic=lambda: 0).now()
    5000001
    """

    def __init__(
        self,
        *,
        not_before: int = 0,
        wall: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._monotonic = monotonic
        self._start = max(wall() // 1000, not_before + 1) - monotonic() // 1000

    def now(self) -> int:
        """The time now."""
        return self._start + self._monotonic() // 1000


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
