"""A short life of a service: lists, clicks, windows that end, snapshots; what was acknowledged, and what must hold afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.log.replay import replay
from rankpolicy.service.log.sqlite import SqliteStore
from tests.service.parts import (
    BANDIT,
    WINDOW,
    HandClock,
    JournalHere,
    click,
    events,
    live_policies,
    policy_of,
    ranked,
    request_of,
)

MOST_TRIES = 40


@dataclass
class Story:
    """What was asked for and what was acknowledged, with the number of disk operations up to each acknowledgement."""

    path: Path
    seed: int
    num_operations: Callable[[], int] = lambda: 0
    asked: set[str] = field(default_factory=set)
    acknowledged: list[tuple[int, str, str]] = field(default_factory=list)  # operations, id, fate
    num_refused: int = 0

    def live(self, turns: int) -> None:
        """Live for some turns; a refused request is sent again until it is stored."""
        rng, clock = random.Random(self.seed), HandClock()
        self.store = self._opened()
        self.policies = self._tried(lambda: live_policies(self.store, {"default": BANDIT}))
        self.journal = JournalHere(self.store, self.policies, clock, snapshot_every=3)
        for turn in range(turns):
            name = f"r{turn}"
            shown = self._stored(ranked(self.policies, name, request_of(f"q{turn % 3}", "abcdef")))
            self._acknowledge(name, "shown")
            items = rng.sample(shown.shown.items, rng.randrange(3))
            given = [click(f"{name}-{item}", name, item) for item in items]
            given += [click(f"early-{turn}", f"r{turn + 1}", "a")] if rng.random() < 0.3 else []
            if given:
                fates = self._stored(events(*given))
                for event, fate in zip(given, fates, strict=True):
                    self._acknowledge(event.event_id, fate)
            clock.time += rng.choice([10, WINDOW // 2, WINDOW + 1])

    def check_live_state(self) -> None:
        """What the policy knows in memory is what the log says."""
        self._stored(events())
        (found,) = replay(self.store, policy_of)
        assert found.is_equal
        live = self.policies.named(None)
        if found.last_lesson:
            assert live.state_hash() == (found.last_lesson, found.state_sha256)

    def close(self) -> None:
        """Release the database."""
        self.store.close()

    def check(self, path: Path, *, operations: int | None = None) -> None:
        """A database holds what was acknowledged by then, nothing that was not asked for, and works.

        Parameters
        ----------
        path
            The database.
        operations
            Number of disk operations after which it was cut off; None: at the end.
        """
        store = SqliteStore(path, check="full")
        try:
            store.check()
            (found,) = replay(store, policy_of) or (None,)
            assert found is None or found.is_equal
            connection = store._connection
            stored = dict(connection.execute("SELECT event_id, fate FROM events").fetchall())
            stored |= {name: "shown" for (name,) in connection.execute("SELECT ranking_id FROM rankings").fetchall()}
            promised = {
                name: fate for number, name, fate in self.acknowledged if operations is None or number <= operations
            }
            missing = {name for name in promised if name not in stored}
            assert not missing, f"acknowledged and lost: {sorted(missing)}"
            # A commit that failed may be on disk; then the event that is sent again is a duplicate.
            assert all(fate in (stored[name], "duplicate") for name, fate in promised.items())
            assert stored.keys() <= self.asked, "something is stored that nobody sent"
            live = live_policies(store, {"default": BANDIT}, now=10**15)
            committed = store.commit([ranked(live, "afterwards", request_of("q", "ab"))], now=10**15)
            assert committed.outcomes[0].shown.ranking_id == "afterwards"
        finally:
            store.close()

    def _opened(self) -> SqliteStore:
        return self._tried(lambda: SqliteStore(self.path))

    def _stored(self, work: Any) -> Any:
        names = [work.shown.ranking_id] if hasattr(work, "shown") else [event.event_id for event in work.events]
        self.asked |= set(names)

        def once() -> Any:
            answers: list[Any] = []
            self.journal.submit_all([(work, answers.append)])
            if not answers:  # left to the thread, which is not running here
                self.journal._commit(self.journal._gather())
            if isinstance(answers[0], Exception):
                raise answers[0]
            return answers[0]

        return self._tried(once)

    def _tried(self, once: Callable[[], Any]) -> Any:
        for _ in range(MOST_TRIES):
            try:
                return once()
            except UnavailableError:
                self.num_refused += 1
        raise AssertionError("it was refused for ever")

    def _acknowledge(self, name: str, fate: str) -> None:
        self.acknowledged.append((self.num_operations(), name, fate))
