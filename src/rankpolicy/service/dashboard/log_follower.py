"""The thread that reads what is new in the log and adds it to the statistics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rankpolicy.service.dashboard.log_rows import events_between, lists_between
from rankpolicy.service.dashboard.statistics import Statistics
from rankpolicy.service.domain.records import PolicyVersion
from rankpolicy.service.log.store import Store

MOST_BEHIND = 50_000  # how many rows a restart reads; older ones are left out
ROWS_AT_ONCE = 16  # a fraction of a millisecond, for which a request may have to wait
SECONDS_BETWEEN_LOOKS = 0.5
_REST = 19  # pause after each part, in multiples of the time it took


class LogFollower:
    """Keeps statistics up to date. It works for a twentieth of the time at most, so that ranking is not slowed down."""

    def __init__(self, open_log: Callable[[], Store], statistics: Statistics, *, report: Callable[[str], None]) -> None:
        self._open_log, self._statistics, self._report = open_log, statistics, report
        self._versions: dict[int, PolicyVersion] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rankpolicy statistics", daemon=True)
        self.seq: int | None = None  # the last row that is in the statistics
        self.behind = 0  # rows of the log that are not

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        store: Store | None = None
        last_failure = ""
        try:
            while not self._ending.is_set():
                try:
                    store = self._open_log() if store is None else store
                    self._catch_up(store)
                    last_failure = ""
                except Exception as error:  # the dashboard stands still; lists are served further
                    if last_failure != str(error):  # once, however long it lasts
                        last_failure = str(error)
                        self._report(f"the dashboard cannot read the log: {last_failure}")
                    if store is not None:
                        store.close()
                        store = None
                self._ending.wait(SECONDS_BETWEEN_LOOKS)
        finally:
            if store is not None:
                store.close()

    def _catch_up(self, store: Store) -> None:
        last = store.last_seq()
        first = max(0, last - MOST_BEHIND)
        seq = first if self.seq is None else max(first, self.seq)
        while seq < last and not self._ending.is_set():
            start = time.perf_counter()
            until = min(last, seq + ROWS_AT_ONCE)
            self._add(store, seq, until)
            self.seq = seq = until
            self.behind = last - seq
            self._ending.wait(_REST * (time.perf_counter() - start))

    def _add(self, store: Store, after: int, until: int) -> None:
        lists = lists_between(store, after=after, until=until)
        if any(row.version not in self._versions for row in lists):
            self._versions = {version.key: version for version in store.versions()}
        self._statistics.add(lists, events_between(store, after=after, until=until), self._versions)
