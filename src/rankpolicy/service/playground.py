"""Simulated users for ``rankpolicy serve --playground``: a small shop, whose customers have known tastes and send real requests."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankpolicy.service.client import Client
from rankpolicy.service.config import DEFAULT_POLICY, ServiceConfig
from rankpolicy.service.domain.keys import new_key
from rankpolicy.service.errors import ServiceError
from rankpolicy.service.log import is_url, open_store
from rankpolicy.types import RankPolicyError

CUTOFF = 5
GROUPS = ("marketplace", "own brand")
_QUERIES = {
    "red shoes": ("sneaker", "loafer", "sandal", "boot", "pump", "slipper", "clog"),
    "garden chair": ("deck chair", "bench", "stool", "recliner", "swing", "folding chair", "rocker"),
    "coffee": ("espresso", "filter", "decaf", "capsules", "beans", "instant", "cold brew"),
    "rain jacket": ("poncho", "parka", "shell", "trench", "windbreaker", "cape", "anorak"),
    "desk lamp": ("clamp lamp", "reading light", "ring light", "lantern", "spot", "bar light", "globe"),
    "notebook": ("dotted", "ruled", "blank", "squared", "planner", "sketchbook", "pocket"),
    "running watch": ("gps", "solar", "classic", "slim", "rugged", "kids", "hybrid"),
    "olive oil": ("mild", "fruity", "organic", "spray", "truffle", "lemon", "chili"),
}
LEAVES = (0.9, 0.8, 0.7, 0.6, 0.5)  # probability that a click at each position is the last
POLICIES: dict[str, dict[str, Any]] = {"learning": DEFAULT_POLICY, "uniform": {"kind": "uniform"}}
DB = "playground.db"
WINDOW_SECONDS = 2.0  # so that the bandit learns while one watches
_PURCHASES = 0.1  # share of clicks that a purchase follows
_SECONDS_AFTER_FAILURE = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldItem:
    """An item of the shop."""

    name: str
    group: str
    attraction: float


class World:
    """Queries, their items, and users who click (dependent click model, Guo et al. 2009).

    A user looks at the items from the first on, clicks an item with the probability ``attraction``, and leaves after a click with a
    probability that depends on the position.
    """

    def __init__(self, seed: int = 0) -> None:
        generator = random.Random(seed)
        self.items: dict[str, list[WorldItem]] = {}
        for query, words in _QUERIES.items():
            names = [f"{group.split()[0]} {word}" for group in GROUPS for word in words]
            good = set(generator.sample(names[:7], 2) + generator.sample(names[7:], 1))
            items = [
                WorldItem(
                    name=name,
                    group=GROUPS[number >= 7],
                    attraction=generator.uniform(0.3, 0.5) if name in good else generator.uniform(0.01, 0.07),
                )
                for number, name in enumerate(names)
            ]
            generator.shuffle(items)  # the shop's own order knows nothing
            self.items[query] = items
        self._popularity = [1 / (1 + rank) ** 0.7 for rank in range(len(self.items))]

    def query(self, user: random.Random) -> str:
        """A query; some are asked more often than others."""
        return user.choices(list(self.items), self._popularity)[0]

    def clicks(self, query: str, shown: list[str], user: random.Random) -> list[str]:
        """What a user clicks of a list, in order."""
        attraction = {item.name: item.attraction for item in self.items[query]}
        clicked = []
        for position, name in enumerate(shown):
            if user.random() < attraction.get(name, 0.0):
                clicked.append(name)
                if user.random() < LEAVES[min(position, len(LEAVES) - 1)]:
                    break
        return clicked


class Playground:
    """Simulated users who each ask one policy, chosen at random, for a list."""

    def __init__(
        self,
        url: str,
        policies: Sequence[str],
        *,
        rate: float,
        key: str | None = None,
        seed: int | None = None,
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        if not 0 < rate < math.inf:
            raise RankPolicyError(f"the rate of the playground must be a number above 0; got {rate!r:.80}.")
        self._client = Client(url, key=key, attempts=1)
        self._policies, self._rate, self._report = list(policies), rate, report
        self._users = random.Random(seed)
        self.world = World()
        self.num_visits = 0
        self._asked = ""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rankpolicy playground", daemon=True)

    def start(self) -> None:
        """Let users come."""
        self._thread.start()

    def stop(self) -> None:
        """Let no more come."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
        self._client.close()

    def visit(self) -> None:
        """One user: a list, and what they click."""
        user = self._users
        query = self.world.query(user)
        self._asked = user.choice(self._policies)
        items = [{"id": item.name, "group": item.group} for item in self.world.items[query]]
        shown = self._client.rank(
            query=query,
            items=items,
            cutoff=CUTOFF,
            policy=self._asked,
            user=f"playground {user.randrange(1000)}",
            context={"playground": True},
        )
        events: list[dict[str, Any]] = []
        for name in self.world.clicks(query, [item["id"] for item in shown["items"]], user):
            common = {"ranking_id": shown["ranking_id"], "item": name, "timestamp": time.time()}
            events.append({"type": "click"} | common)
            if user.random() < _PURCHASES:
                events.append({"type": "purchase", "value": round(user.uniform(5, 90), 2)} | common)
        if events:
            self._client.events(events)
        self.num_visits += 1

    def _drop(self, error: ServiceError) -> None:
        """Ask a policy no more that cannot rank these items, such as a ranker of features."""
        if error.status == 422 and self._asked in self._policies:
            self._policies.remove(self._asked)
            if not self._policies:
                self._report("playground: no policy can rank the items of the playground; no more users come.")
                self._ending.set()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ending.is_set():
            try:
                self.visit()
            except ServiceError as error:
                if self._ending.is_set():
                    return
                if error.status in range(400, 500):  # others say that the server is ending, or busy
                    self._report(f"playground: {error}")
                    self._drop(error)
                self._ending.wait(_SECONDS_AFTER_FAILURE)
                due = time.monotonic()
            # A slow server is not flooded later.
            due = max(due + self._users.expovariate(self._rate), time.monotonic() - 1)
            self._ending.wait(max(0.0, due - time.monotonic()))


def with_playground_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of ``ServiceConfig``; where they name none, a bandit and random lists, a database and a window for the playground.

    >>> with_playground_defaults({"db": "mine.db"})["window_seconds"]
    2.0
    """
    return {"db": DB, "window_seconds": WINDOW_SECONDS, "policies": POLICIES} | dict(settings)


@contextmanager
def simulated_users(
    config: ServiceConfig, *, rate: float, seed: int | None, report: Callable[[str], None]
) -> Iterator[Callable[[str], None]]:
    """Gives a function that lets users come to the address it is called with; they leave at the end."""
    # Before the server reads the keys for the first time: it would refuse the first users otherwise.
    key = _new_key(config)
    with ExitStack() as at_end:

        def start(url: str) -> None:
            users = Playground(url, list(config.policies), rate=rate, key=key, seed=seed, report=report)
            users.start()
            at_end.callback(users.stop)

        yield start


def _new_key(config: ServiceConfig) -> str | None:
    """A key for the users if the service asks for keys. It is known to this process only."""
    if not is_url(config.place) and not Path(config.db).exists():
        return None
    with closing(open_store(config.place, role="keys")) as store:
        if not store.had_keys():
            return None
        key, stored = new_key(["rank", "events"])
        store.add_key(stored, now=time.time_ns() // 1000)
        return key
