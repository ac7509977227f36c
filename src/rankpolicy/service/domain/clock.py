"""The time of the service: microseconds that never run backwards."""

from __future__ import annotations

import time
from collections.abc import Callable


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
