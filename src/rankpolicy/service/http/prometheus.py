"""Counters of requests, and gauges of disk and memory, in the text format of Prometheus."""

from __future__ import annotations

import os
import shutil
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

from rankpolicy.service.config import ServiceConfig

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)  # seconds


class Metrics:
    """Requests by path and status, and how long they took."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._durations: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self.events: Counter[str] = Counter()

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests[path, status] += 1
        self._durations.setdefault(path, [0] * (len(BUCKETS) + 1))[bisect_left(BUCKETS, seconds)] += 1
        self._seconds[path] += seconds  # type: ignore[assignment]

    def text(self, gauges: Mapping[str, float | None], counters: Mapping[str, float]) -> str:
        """All counters."""
        lines = ["# TYPE rankpolicy_requests_total counter"]
        lines += [
            f'rankpolicy_requests_total{{path="{path}",status="{status}"}} {number}'
            for (path, status), number in sorted(self._requests.items())
        ]
        lines.append("# TYPE rankpolicy_request_seconds histogram")
        for path, counts in sorted(self._durations.items()):
            total = 0
            for bound, number in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                total += number
                lines.append(f'rankpolicy_request_seconds_bucket{{path="{path}",le="{bound}"}} {total}')
            lines.append(f'rankpolicy_request_seconds_sum{{path="{path}"}} {self._seconds[path]:.6f}')
            lines.append(f'rankpolicy_request_seconds_count{{path="{path}"}} {total}')
        lines.append("# TYPE rankpolicy_events_total counter")
        lines += [f'rankpolicy_events_total{{fate="{fate}"}} {number}' for fate, number in sorted(self.events.items())]
        for kind, numbers in (("gauge", gauges), ("counter", counters)):
            for name, value in numbers.items():
                if value is not None:
                    lines += [f"# TYPE rankpolicy_{name} {kind}", f"rankpolicy_{name} {value:.10g}"]
        return "\n".join(lines) + "\n"


def disk_bytes(config: ServiceConfig) -> tuple[int, int] | None:
    """Free and all bytes of the disk of the database; None where it is another server's. Not for the event loop: a disk may not answer."""
    if config.store is not None:
        return None
    try:
        usage = shutil.disk_usage(os.path.dirname(os.path.abspath(config.db)))
    except OSError:
        return None
    return usage.free, usage.total


def host_gauges(config: ServiceConfig) -> dict[str, float | None]:
    """Disk and memory as metrics. Not for the event loop: a disk may not answer."""
    free, total = disk_bytes(config) or (None, None)
    return {
        "disk_free_bytes": free,
        "disk_total_bytes": total,
        "wal_bytes": _wal_bytes(config),
        "resident_bytes": _resident_bytes(),
    }


def _wal_bytes(config: ServiceConfig) -> int | None:
    """Size of the write-ahead log; None where another server keeps it."""
    if config.store is not None:
        return None
    try:
        return os.path.getsize(f"{config.db}-wal")
    except OSError:
        return 0


def _resident_bytes() -> int | None:
    """Memory of this process; None where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
