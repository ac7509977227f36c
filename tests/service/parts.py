"""A service without HTTP, with a clock that tests move by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankpolicy.service.domain.clock import Clock
from rankpolicy.service.domain.messages import Item, NewEvent, RankRequest
from rankpolicy.service.domain.records import Committed, NewEvents, NewRanking, ShownList
from rankpolicy.service.domain.routing import generator_of
from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.learning.live import LivePolicies
from rankpolicy.service.log import open_store
from rankpolicy.service.log.journal import Done, Journal, Piece, Work
from rankpolicy.service.log.store import Store
from rankpolicy.service.policies import SERVED
from rankpolicy.service.policies.policy_settings import policy_of_version, stored_settings

WINDOW = 1_000_000
BANDIT = {"kind": "bandit", "bandit": "mp-ts"}


class HandClock(Clock):
    def __init__(self, start: int = 1_000) -> None:
        self.time = start

    def now(self) -> int:
        return self.time


policy_of = policy_of_version


def live_policies(store: Store, policies: dict[str, dict[str, Any]], now: int = 1_000) -> LivePolicies:
    made = {}
    for name, given in policies.items():
        settings = {key: value for key, value in given.items() if key != "kind"}
        policy = SERVED.named(given["kind"])(**settings)
        made[name] = policy, json.dumps(stored_settings(policy, settings), sort_keys=True)
    return LivePolicies(made, store, now=now, report=lambda text: None)


def request_of(query: str, items: str | list[str], cutoff: int = 3) -> RankRequest:
    return RankRequest(query=query, items=[Item(id=name) for name in items], cutoff=cutoff)


def ranked(live: LivePolicies, ranking_id: str, request: RankRequest, *, policy: str | None = None) -> NewRanking:
    """The list that a policy shows, ready to be stored."""
    chosen = live.named(policy)
    ordered = chosen.order(request, generator=generator_of(b"secret", ranking_id))
    shown = ShownList(
        ranking_id=ranking_id,
        policy=chosen.version.policy,
        policy_version=chosen.version.number,
        query=request.query,
        items=ordered.items,
        scores=ordered.scores,
        propensities=ordered.propensities,
        no_propensities=ordered.no_propensities,
        mode=ordered.mode,
        memo=ordered.memo,
        rewards=ordered.rewards,
    )
    return NewRanking(
        shown=shown,
        version=chosen.version.key,
        request=b"{}",
        request_hash=repr(request).encode(),
        window=WINDOW,
        learns=chosen.policy.learns,
    )


def click(event_id: str, ranking_id: str, item: str, **more: Any) -> NewEvent:
    return NewEvent(event_id=event_id, ranking_id=ranking_id, item=item, **more)


def events(*given: NewEvent) -> NewEvents:
    return NewEvents(events=list(given), window=WINDOW)


@dataclass
class Parts:
    """A store and its policies; every call of ``do`` is one transaction."""

    path: Path | str
    policies: dict[str, dict[str, Any]]

    def __post_init__(self) -> None:
        self.clock = HandClock()
        self.open()

    def open(self) -> None:
        self.store = open_store(self.path)
        self.live = live_policies(self.store, self.policies)

    def do(self, *work: NewRanking | NewEvents) -> Any:
        committed: Committed = self.store.commit(work, now=self.clock.time)
        self.live.learn(committed.lessons)
        return committed.outcomes[0] if len(work) == 1 else committed.outcomes

    def show(self, ranking_id: str, query: str = "q", items: str = "abcd", policy: str | None = None) -> Any:
        return self.do(ranked(self.live, ranking_id, request_of(query, items), policy=policy))

    def end_windows(self) -> None:
        self.clock.time += WINDOW + 1
        self.do()

    def state(self, name: str | None = None) -> bytes:
        return self.live.named(name).policy.state()

    def counts(self, query: str, items: str) -> list[list[int]]:
        """Clicks and observations of the items of a bandit policy."""
        bandit = self.live.named(None).policy
        return bandit._bandit.counts_of(query, list(items)).tolist()


def until_refused(do: Callable[[int], Any]) -> tuple[int, str]:
    """Call until the store cannot write; the number of the call and what was said."""
    for number in range(1_000):
        try:
            do(number)
        except UnavailableError as error:
            return number, str(error)
    raise AssertionError("it was never refused")


def break_off_once(policy: Any, monkeypatch: Any) -> None:
    """The next lessons are learned, and then something fails."""
    learn = policy.learn

    def breaks_off(lessons: Any) -> None:
        learn(lessons)
        monkeypatch.undo()
        raise RuntimeError("broke off")

    monkeypatch.setattr(policy, "learn", breaks_off)


class WriterHere:
    """Commits in the thread that asks for it, where a server has another process do it."""

    num_restarts = 0

    def __init__(self, store: Store) -> None:
        self._store = store

    def commit(self, work: Sequence[Work], *, now: int) -> Committed:
        """In the thread that calls."""
        return self._store.commit(work, now=now)

    def reopen(self) -> None:
        """The journal reopens the store itself."""

    def kill(self) -> None:
        """There is no process."""


class JournalHere(Journal):
    """A journal whose thread commits, with or without an event loop."""

    def __init__(self, store: Store, policies: LivePolicies, clock: Any, **settings: Any) -> None:
        super().__init__(store, policies, clock, writer=WriterHere(store), **settings)

    def submit_all(self, works: Sequence[tuple[Work, Done]]) -> None:
        """Leave everything to the thread."""
        for work, done in works:
            self._waiting.put(Piece(work, done))

    def write(self, work: Work) -> Any:
        """Have the thread store something, and wait for it: the outcome."""
        return write(self, work)


def write(journal: Journal, work: Work) -> Any:
    """Have the thread of a journal store something, and wait for it: the outcome."""
    waiting: Future[Any] = Future()
    refusal = journal._refusal()
    if refusal is not None:
        raise refusal
    journal._waiting.put(Piece(work, waiting.set_result))
    outcome = waiting.result()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
