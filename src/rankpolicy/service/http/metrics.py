"""Counters in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

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
