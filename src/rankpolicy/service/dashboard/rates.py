"""Requests and events of the last minutes: how many per second, and how long they took."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

KEPT_SECONDS = 300
SECONDS_NOW = 30  # what "now" means
SECONDS_PER_POINT = 5
_STEPS = 8  # buckets per doubling of the duration: percentiles are exact to 9 %
_FIRST = 1e-5  # seconds
PATHS = {"/v1/rank": "rank", "/v1/events": "events"}


class _Second:
    __slots__ = ("at", "durations", "events", "failures", "late_events", "requests")

    def __init__(self, at: int) -> None:
        self.at = at
        self.requests: Counter[str] = Counter()
        self.durations: dict[str, Counter[int]] = {name: Counter() for name in PATHS.values()}
        self.events = self.late_events = 0
        self.failures = 0


class Rates:
    """A ring of seconds. Everything happens in the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ring: list[_Second | None] = [None] * KEPT_SECONDS
        self._start = clock()

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        name = PATHS.get(path)
        if name is None:
            return
        now = self._second()
        now.requests[name] += 1
        now.durations[name][_bucket(seconds)] += 1
        now.failures += status >= 500

    def count_events(self, number: int, late: int = 0) -> None:
        """Count events of a request."""
        now = self._second()
        now.events += number
        now.late_events += late

    def document(self) -> dict[str, Any]:
        """Rates and percentiles now, and points of the last minutes, the oldest first."""
        now = int(self._clock())
        age = max(1.0, min(SECONDS_NOW, self._clock() - self._start))
        recent = self._between(now - SECONDS_NOW, now + 1)
        points = []
        last = now - now % SECONDS_PER_POINT  # the running point is not complete
        for start in range(last - KEPT_SECONDS + SECONDS_PER_POINT, last, SECONDS_PER_POINT):
            if start + SECONDS_PER_POINT > self._start:
                inside = self._between(start, start + SECONDS_PER_POINT)
                points.append({"seconds_ago": now - start} | _summary(inside, SECONDS_PER_POINT))
        document = {"window_seconds": SECONDS_NOW} | _summary(recent, age) | {"points": points}
        return document | {"last_minutes": self._last_minutes(now)}

    def _last_minutes(self, now: int) -> dict[str, Any]:
        """What alarms are raised by."""
        seconds = self._between(now - KEPT_SECONDS, now + 1)
        durations: Counter[int] = sum((second.durations["rank"] for second in seconds), Counter())
        return {
            "seconds": KEPT_SECONDS,
            "requests": sum(second.requests.total() for second in seconds),
            "failures": sum(second.failures for second in seconds),
            "events": sum(second.events for second in seconds),
            "late_events": sum(second.late_events for second in seconds),
            "rank_p99_ms": _percentile(durations, 0.99),
        }

    def _second(self) -> _Second:
        at = int(self._clock())
        second = self._ring[at % KEPT_SECONDS]
        if second is None or second.at != at:
            second = self._ring[at % KEPT_SECONDS] = _Second(at)
        return second

    def _between(self, start: int, end: int) -> list[_Second]:
        return [second for second in self._ring if second is not None and start <= second.at < end]


def _summary(seconds: Iterable[_Second], length: float) -> dict[str, Any]:
    seconds = list(seconds)
    summary: dict[str, Any] = {
        "lists_per_second": sum(second.requests["rank"] for second in seconds) / length,
        "events_per_second": sum(second.events for second in seconds) / length,
        "failures_per_second": sum(second.failures for second in seconds) / length,
    }
    for name in PATHS.values():
        together: Counter[int] = sum((second.durations[name] for second in seconds), Counter())
        for percent in (50, 99):
            summary[f"{name}_p{percent}_ms"] = _percentile(together, percent / 100)
    return summary


def _bucket(seconds: float) -> int:
    return max(0, math.ceil(_STEPS * math.log2(max(seconds, _FIRST) / _FIRST)))


def _percentile(counts: Counter[int], share: float) -> float | None:
    """Upper bound of the bucket in which the percentile lies, in milliseconds."""
    remaining = share * counts.total()
    for bucket in sorted(counts):
        remaining -= counts[bucket]
        if remaining <= 0:
            return float(1e3 * _FIRST * 2.0 ** (bucket / _STEPS))
    return None
