"""The service behind the interface: it orders items, has them stored, and answers when they are."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import Any

import msgspec

from rankpolicy.service.clock import Clock
from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.ids import time_ordered_id
from rankpolicy.service.journal import Done, Journal, deliver_here
from rankpolicy.service.live import LivePolicies, LivePolicy
from rankpolicy.service.messages import EventIn, EventsAnswer, RankAnswer, RankRequest, Refused, ShownItem
from rankpolicy.service.opening import open_store
from rankpolicy.service.policies.served_policy import Ordered
from rankpolicy.service.randomness import generator_of, set_to_list
from rankpolicy.service.records import Fate, NewEvent, NewEvents, NewRanking, ShownList, StoredRanking
from rankpolicy.types import RankPolicyError

_ENCODER = msgspec.json.Encoder()
_REFUSED = {
    "conflict": (409, "this event_id was used before, with another content"),
    "unknown_item": (422, "this item is not in the list"),
}


class RankingService:
    """Policies, the log, and the thread that writes it.

    Parameters
    ----------
    config
        What to serve.
    report
        Called with a sentence when something goes wrong that no caller is told.
    """

    def __init__(self, config: ServiceConfig, *, report: Callable[[str], None] = lambda text: None) -> None:
        self.config = config
        policies = config.made_policies()
        self._store = open_store(config.place, check=config.check)
        try:
            self.reader = open_store(config.place, role="reader", check="none")
            self.clock = Clock(not_before=self._store.last_stamp())
            self.policies = LivePolicies(policies, self._store, now=self.clock.now(), report=report)
        except BaseException:
            self._store.close()
            raise
        self._secret = (
            self._store.secret() if config.seed is None else blake2b(str(config.seed).encode(), digest_size=32).digest()
        )
        self.journal = Journal(
            self._store,
            self.policies,
            self.clock,
            deliver=self._deliver,
            snapshot_every=config.snapshot_every,
            report=report,
        )
        self._slow = ThreadPoolExecutor(1, "rankpolicy ranker")
        self._generator = generator_of(b"", "")  # that of the list which is ranked at the moment
        self._handed_over: list[tuple[NewRanking | NewEvents, Done]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._was_stopped = False

    def start(self) -> None:
        """Begin to write. Called in the event loop."""
        for live in self.policies.by_name.values():
            live.policy.warm_up()
        self._loop = asyncio.get_running_loop()
        self.journal.start()

    def stop(self) -> None:
        """Commit what waits, keep snapshots, and release the database."""
        if self._was_stopped:
            return
        self._was_stopped = True
        if self._loop is not None:
            self.journal.stop()
        self._slow.shutdown()
        self.reader.close()
        self._store.close()

    async def rank(self, request: RankRequest) -> RankAnswer:
        """Order the items of a request, store the list, and return it once it is on disk.

        Parameters
        ----------
        request
            Query, items and cutoff.
        """
        start = time.perf_counter_ns()
        live = self.policies.named(request.policy)
        _check_names(request)
        ranking_id = request.ranking_id or time_ordered_id()
        if live.policy.is_quick:
            generator = set_to_list(self._generator, self._secret, ranking_id)
            ordered = live.order(request, generator=generator)
        else:
            generator = generator_of(self._secret, ranking_id)
            loop = asyncio.get_running_loop()
            ordered = await loop.run_in_executor(self._slow, lambda: live.order(request, generator=generator))
        new = self._new_ranking(ranking_id, request, live, ordered)
        try:
            stored = await self._stored(new)
        except UnavailableError:
            if self.journal.failure is None:  # too much to do, not a broken disk
                raise
            return _answer(new.shown, start, logged=False)  # users shall see a list even if the disk is full
        assert isinstance(stored, StoredRanking)
        return _answer(stored.shown, start, logged=True)

    async def take(self, events: list[EventIn]) -> EventsAnswer:
        """Store events; the answer comes once they are on disk.

        Parameters
        ----------
        events
            Events of one request.
        """
        for event in events:
            if "\0" in event.event_id or "\0" in event.ranking_id:
                raise RankPolicyError(f"ids must not hold the character U+0000; got {event.event_id!r:.80}.")
        new = [NewEvent(**{name: getattr(event, name) for name in event.__struct_fields__}) for event in events]
        fates: list[Fate] = await self._stored(NewEvents(events=new, window=self.config.window))
        refused = [
            Refused(event_id=event.event_id, status=_REFUSED[fate][0], reason=_REFUSED[fate][1])
            for event, fate in zip(events, fates, strict=True)
            if fate in _REFUSED
        ]
        return EventsAnswer(
            accepted=fates.count("accepted"),
            duplicate=fates.count("duplicate"),
            orphan=fates.count("orphan"),
            late=fates.count("late"),
            rejected=refused,
        )

    def _new_ranking(self, ranking_id: str, request: RankRequest, live: LivePolicy, ordered: Ordered) -> NewRanking:
        encoded = _ENCODER.encode(request)
        shown = ShownList(
            ranking_id=ranking_id,
            policy=live.version.policy,
            policy_version=live.version.number,
            query=request.query,
            items=ordered.items,
            model_sha256=live.policy.model_sha256,
            scores=ordered.scores,
            propensities=ordered.propensities,
            no_propensities=ordered.no_propensities,
        )
        return NewRanking(
            shown=shown,
            version=live.version.key,
            request=encoded,
            request_hash=blake2b(encoded, digest_size=16).digest(),
            window=self.config.window,
            learns=live.policy.learns and bool(ordered.items),
        )

    async def _stored(self, work: NewRanking | NewEvents) -> Any:
        assert self._loop is not None
        waiting: asyncio.Future[Any] = self._loop.create_future()

        def done(outcome: Any) -> None:
            if not waiting.done():  # it is done already where the caller has gone
                waiting.set_result(outcome)

        if not self._handed_over:  # everything that this turn of the event loop reads goes to the journal at once
            self._loop.call_soon(self._hand_over)
        self._handed_over.append((work, done))
        outcome = await waiting
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _hand_over(self) -> None:
        pieces, self._handed_over = self._handed_over, []
        self.journal.submit_all(pieces)

    def _deliver(self, outcomes: list[tuple[Done, Any]]) -> None:
        """From the thread of the journal into the event loop: one wake-up per transaction."""
        assert self._loop is not None
        if outcomes and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(deliver_here, outcomes)


def _check_names(request: RankRequest) -> None:
    names = [item.id for item in request.items]
    if len(set(names)) < len(names):
        raise RankPolicyError("items must have different ids; got one twice.")
    # numpy drops U+0000 at the end of a text, so two names would become one, and PostgreSQL has no such texts.
    given = (request.query, request.ranking_id or "", *names)
    if "\0" in " ".join(given):
        name = next(name for name in given if "\0" in name)
        raise RankPolicyError(f"queries and ids must not hold the character U+0000; got {name!r:.80}.")


def _answer(shown: ShownList, start: int, *, logged: bool) -> RankAnswer:
    size = len(shown.items)
    scores: list[Any] = shown.scores if shown.scores is not None else [None] * size
    propensities: list[Any] = shown.propensities if shown.propensities is not None else [None] * size
    log_propensity = None
    if shown.propensities is not None:
        is_possible = min(shown.propensities, default=1.0) > 0
        log_propensity = math.fsum(map(math.log, shown.propensities)) if is_possible else -math.inf
    return RankAnswer(
        ranking_id=shown.ranking_id,
        policy=shown.policy,
        policy_version=shown.policy_version,
        model_sha256=shown.model_sha256,
        items=[
            ShownItem(id=name, position=place + 1, score=scores[place], propensity=propensities[place])
            for place, name in enumerate(shown.items)
        ],
        list_log_propensity=log_propensity,
        no_propensities=shown.no_propensities,
        logged=logged,
        took_us=(time.perf_counter_ns() - start) // 1000,
    )
