"""Databases with a million events, to restart from."""

from __future__ import annotations

from pathlib import Path

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.domain.clock import Clock
from rankpolicy.service.domain.messages import NewEvent
from rankpolicy.service.domain.records import NewEvents, NewRanking, ShownList
from rankpolicy.service.learning.live import LivePolicies
from rankpolicy.service.log.sqlite import SqliteStore

NUM_QUERIES = 10_000
ITEMS_PER_QUERY = 100
ITEMS_PER_LIST = 10


def fill(config: ServiceConfig, *, num_lists: int, events_per_list: int) -> None:
    """Store lists, events and the lessons from them, as a server would have; no snapshot is kept.

    With 100,000 lists of 10 items each of 1,000,000 (query, item) pairs comes once.

    Parameters
    ----------
    config
        The service; its first policy must learn.
    num_lists, events_per_list
        How many.
    """
    store = SqliteStore(config.db)
    store._connection.pragma("synchronous", "OFF")  # only while it is filled
    now = Clock().now() - 10**9
    live = LivePolicies(config.made_policies(), store, now=now, report=print).named(None)
    try:
        for start in range(0, num_lists, 1_000):
            work: list[NewRanking | NewEvents] = []
            for number in range(start, min(start + 1_000, num_lists)):
                name, query, block = f"list-{number:09d}", number % NUM_QUERIES, number // NUM_QUERIES
                first = block * ITEMS_PER_LIST % ITEMS_PER_QUERY
                items = [f"item-{first + place:05d}" for place in range(ITEMS_PER_LIST)]
                shown = ShownList(
                    ranking_id=name,
                    policy=live.version.policy,
                    policy_version=live.version.number,
                    query=f"query {query}",
                    items=items,
                    no_propensities="filled",
                )
                work.append(
                    NewRanking(
                        shown=shown, version=live.version.key, request=b"{}", request_hash=b"", window=10, learns=True
                    )
                )
                events = [
                    NewEvent(event_id=f"{name}-{place:03d}", ranking_id=name, item=items[place % ITEMS_PER_LIST])
                    for place in range(events_per_list)
                ]
                work.append(NewEvents(events=events, window=10))
            store.commit(work, now=now)
            now += 100
            while store.commit([], now=now).lessons:
                pass
    finally:
        store.close()


def keep_snapshot(config: ServiceConfig) -> None:
    """Keep a snapshot of what the log says, as a server does when it ends.

    Parameters
    ----------
    config
        The service.
    """
    store = SqliteStore(config.db, check="none")
    now = Clock(not_before=store.last_stamp()).now()
    for live in LivePolicies(config.made_policies(), store, now=now, report=print).by_name.values():
        store.save_snapshot(live.snapshot(), now=now)
    store.close()


def size_of(path: str) -> float:
    """Megabytes of a database."""
    return Path(path).stat().st_size / 1e6
