"""Simulated users beside a server of the same command."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.domain.keys import new_key
from rankpolicy.service.log.locations import is_url, open_store
from rankpolicy.service.playground.traffic import DB, POLICIES, WINDOW_SECONDS, Playground


def with_playground_defaults(told: Mapping[str, Any]) -> dict[str, Any]:
    """What a service is told, with a bandit and random lists, a database and a window for the playground where it was not told others.

    Parameters
    ----------
    told
        By the names of ``ServiceConfig``.

    >>> with_playground_defaults({"db": "mine.db"})["window_seconds"]
    2.0
    """
    return {"db": DB, "window_seconds": WINDOW_SECONDS, "policies": POLICIES} | dict(told)


@contextmanager
def simulated_users(
    config: ServiceConfig, *, rate: float, seed: int | None, report: Callable[[str], None]
) -> Iterator[Callable[[str], None]]:
    """Gives a function that lets users come to the address it is called with; they leave at the end.

    Parameters
    ----------
    config
        What is served.
    rate
        Users per second.
    seed
        Of the users; None for others each time.
    report
        Called with a sentence when a policy cannot serve these users.
    """
    started: list[Playground] = []

    def start(url: str) -> None:
        users = Playground(url, list(config.policies), rate=rate, key=_own_key(config), seed=seed, report=report)
        users.start()
        started.append(users)

    try:
        yield start
    finally:
        for users in started:
            users.stop()


def _own_key(config: ServiceConfig) -> str | None:
    """A key for the users if the service asks for keys. It is known to this process only."""
    if not is_url(config.place) and not Path(config.db).exists():
        return None
    store = open_store(config.place, role="keys", check="none")
    try:
        if not store.had_keys():
            return None
        key, stored = new_key(["rank", "events"])
        store.add_key(stored, now=time.time_ns() // 1000)
        return key
    finally:
        store.close()
