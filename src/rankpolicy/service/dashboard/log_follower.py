"""Rows of the log as the dashboard needs them, and the thread that adds new ones to the statistics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from rankpolicy.service.domain.records import PolicyVersion, ShownList
from rankpolicy.service.log.store import Store
from rankpolicy.service.log.transaction import EVENT, SHOWN

if TYPE_CHECKING:
    from rankpolicy.service.dashboard.statistics import Statistics

MOST_BEHIND = 50_000  # how many rows a restart reads; older ones are left out
ROWS_AT_ONCE = 16  # a fraction of a millisecond, for which a request may have to wait
SECONDS_BETWEEN_LOOKS = 0.5
_REST = 19  # pause after each part, in multiples of the time it took


class LoggedItem(msgspec.Struct, frozen=True, gc=False):
    """What is read of an item of a request."""

    id: str
    group: str | None = None


class LoggedRequest(msgspec.Struct, frozen=True, gc=False):
    """What is read of a request."""

    items: list[LoggedItem] = []


class ListRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A shown list of the log."""

    seq: int
    version: int  # key of the policy version
    stamp: int
    ranking_id: str
    shown: ShownList
    request: bytes


class EventRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event of the log, at the moment at which it and its list were both known."""

    seq: int
    stamp: int
    fate: str  # accepted, late or orphan; attached for an orphan whose list came
    type: str
    ranking_seq: int | None  # None for orphans
    position: int | None  # from 0


_LISTS = "SELECT seq, version, stamp, ranking_id, shown, request FROM rankings"
_EVENTS = "SELECT seq, stamp, fate, body, ranking_seq, position FROM events WHERE seq > ? AND seq <= ?"
_ATTACHED = (
    "SELECT a.seq, e.stamp, 'attached', e.body, a.ranking_seq, a.position FROM attachments a "
    "JOIN events e ON e.seq = a.event_seq WHERE a.seq > ? AND a.seq <= ?"
)


def lists_between(store: Store, *, after: int, until: int) -> list[ListRow]:
    """Lists with a place in the log above ``after``, up to ``until``."""
    return list(map(_list_row, store.rows(f"{_LISTS} WHERE seq > ? AND seq <= ? ORDER BY seq", after, until)))


def list_at(store: Store, seq: int) -> ListRow | None:
    """The list at a place; None where there is none."""
    return next(map(_list_row, store.rows(f"{_LISTS} WHERE seq = ?", seq)), None)


def events_between(store: Store, *, after: int, until: int) -> list[EventRow]:
    """Events with a place above ``after``, up to ``until``, and older ones that found their list there."""
    rows = [row for statement in (_EVENTS, _ATTACHED) for row in store.rows(statement, after, until)]
    return [
        EventRow(seq=seq, stamp=stamp, fate=fate, type=EVENT.decode(body).type, ranking_seq=ranking, position=position)
        for seq, stamp, fate, body, ranking, position in sorted(rows, key=itemgetter(0))
    ]


def _list_row(row: tuple[Any, ...]) -> ListRow:
    seq, version, stamp, ranking_id, shown, request = row
    return ListRow(
        seq=seq, version=version, stamp=stamp, ranking_id=ranking_id, shown=SHOWN.decode(shown), request=request
    )


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
