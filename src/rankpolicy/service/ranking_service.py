"""The service behind the interface: it orders items, has them stored, and answers when they are."""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.domain.clock import Clock, time_ordered_id
from rankpolicy.service.domain.deployments import Change
from rankpolicy.service.domain.messages import ENCODER, EventsAnswer, NewEvent, RankAnswer, RankRequest
from rankpolicy.service.domain.records import NewEvents, NewRanking, Ordered, PolicyVersion, ShownList
from rankpolicy.service.domain.routing import GeneratorOfLists, generator_of
from rankpolicy.service.errors import DamagedStoreError, TooLateError, UnavailableError
from rankpolicy.service.learning.job_process import run_job
from rankpolicy.service.learning.live import LivePolicies, LivePolicy
from rankpolicy.service.log import open_store
from rankpolicy.service.log.journal import Done, Journal
from rankpolicy.service.log.retention import delete_older_than
from rankpolicy.service.log.store import Store
from rankpolicy.service.log.writer import Writer
from rankpolicy.service.policies.policy_settings import policy_of_version
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.service.learning.retrain_settings import Retrain

SECONDS_BETWEEN_LOOKS = 1.0  # a change that another process made is served after this time
SECONDS_BETWEEN_DELETIONS = 3_600.0
_LONGEST_LOOK = 3.0  # seconds; a database that takes longer to answer is not ready
_SECONDS_BETWEEN_BLOCKS = 0.005  # of the check after the start: a million rows take two minutes and a tenth of a core
# Requests in one turn of the event loop that are taken however long it lasts: a moment without a core is no overload. 64 take about 4 ms.
_MOST_TAKEN_AT_ONCE = 64
ReadT = TypeVar("ReadT")


class RankingService:
    """Policies, the log, and the writer process.

    Parameters
    ----------
    config
        What to serve.
    report
        Called with a sentence when something goes wrong that no answer says.
    """

    def __init__(self, config: ServiceConfig, *, report: Callable[[str], None] = lambda text: None) -> None:
        self.config = config
        self._report = report
        # Changes are adopted one after the other, so that an older one does not replace a newer one; one job at a time keeps cores free.
        self._refreshing, self._working = asyncio.Lock(), asyncio.Lock()
        policies = config.made_policies()
        if config.retrain:  # in a process of its own, so that this one stays small
            run_job({"job": "check", "wanted": [asdict(plan) for plan in config.retrains()]})
        self._store = open_store(config.place)
        writer: Writer | None = None
        try:
            # Both run while the states are computed: a process needs half a second to import, pages of a large file take longer.
            self._writer = writer = Writer(config.place, locks=self._store.locks)
            wait_for_check = self._store.check_beside(config.check)
            self.reader = open_store(config.place, role="reader")
            self.clock = Clock(not_before=self._store.last_stamp())
            self._started = self.clock.now()
            self.policies = LivePolicies(policies, self._store, now=self.clock.now(), report=report)
            for live in self.policies.by_name.values():
                live.policy.warm_up()
            wait_for_check()
            writer.reopen()  # it is ready then, and brings the lessons that come from now on
            self.policies.catch_up(self._store)
        except BaseException:
            if writer is not None:
                writer.stop()
            self._store.close()
            raise
        self._secret = (
            self._store.secret() if config.seed is None else blake2b(str(config.seed).encode(), digest_size=32).digest()
        )
        self.journal = Journal(
            self._store,
            self.policies,
            self.clock,
            writer=self._writer,
            snapshot_every=config.snapshot_every,
            list_seconds=config.list_seconds,
            event_seconds=config.event_seconds,
            report=report,
        )
        self._reads = ThreadPoolExecutor(1, "rankpolicy reader")
        self._slow = ThreadPoolExecutor(1, "rankpolicy ranker")
        self._draws = ThreadPoolExecutor(1, "rankpolicy draws")  # apart: lists of rankers do not wait for them
        self._generators = GeneratorOfLists(self._secret)
        self._rankings: set[asyncio.Task[None]] = set()  # of lists that a thread orders
        self._handed_over: list[tuple[NewRanking | NewEvents, Done]] = []
        self._turn_began = 0.0  # when the event loop took the first of them
        self.num_unlogged = 0
        self.num_shed = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._was_stopped = False
        self._ending = threading.Event()
        self._row_check = threading.Thread(target=self._check_rows, name="rankpolicy row check", daemon=True)
        self._damage: str | None = None  # what the check of the rows after the start met
        self._looks: list[Callable[[], None]] = []
        self._look_began: float | None = None  # None between looks
        self._unreadable: str | None = None  # why the database could not be read at the last look
        self._job: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin to write. Called in the event loop."""
        self._loop = asyncio.get_running_loop()
        self.journal.start(self._loop)
        self._row_check.start()
        self._tasks = [self._loop.create_task(self._watch())]
        if self.config.retention_days is not None:
            self._tasks.append(self._loop.create_task(self._delete_old(self.config.retention_days)))
        self._tasks += [self._loop.create_task(self._retrain(plan)) for plan in self.config.retrains()]

    def stop(self) -> None:
        """Commit what waits, keep snapshots, and release the database. Not for the event loop where another process writes."""
        if self._was_stopped:
            return
        self._was_stopped = True
        if self._loop is not None:
            if not self._loop.is_closed():
                for task in self._tasks:
                    self._loop.call_soon_threadsafe(task.cancel)
            self._ending.set()
            self._row_check.join()
            self.journal.stop()  # first: what waits is still committed, by the writer that is stopped below
        if self._job is not None:
            self._job.kill()  # does nothing where it has ended
        self._reads.shutdown(cancel_futures=True)
        self._slow.shutdown(cancel_futures=True)
        self._draws.shutdown(cancel_futures=True)
        self.reader.close()
        self._writer.stop()
        self._store.close()

    @property
    def failure(self) -> str | None:
        """What is damaged, or why lists and events cannot be stored or keys and changes not be read now; None where all is well."""
        return self._damage or self.journal.problem or self._unreadable or self._unanswered_look()

    def _unanswered_look(self) -> str | None:
        began = self._look_began
        seconds = 0.0 if began is None else time.monotonic() - began
        return f"the database has not answered for {seconds:.1f} seconds" if seconds > _LONGEST_LOOK else None

    async def rank(self, request: RankRequest) -> RankAnswer:
        """Order the items of a request, store the list, and return it once it is on disk.

        Parameters
        ----------
        request
            Query, items and cutoff.
        """
        answer: RankAnswer = await self._outcome_of(partial(self.submit_request, request))
        return answer

    async def show(self, request: RankRequest) -> ShownList:
        """The same list with everything that the log has of it.

        Parameters
        ----------
        request
            Query, items and cutoff.
        """
        shown: ShownList = await self._outcome_of(
            partial(self.submit_request, request, answer=lambda shown, start, *, logged: shown)
        )
        return shown

    async def take(self, events: list[NewEvent]) -> EventsAnswer:
        """Store events; the answer comes once they are on disk.

        Parameters
        ----------
        events
            The events.
        """
        answer: EventsAnswer = await self._outcome_of(partial(self.submit_events, events))
        return answer

    async def _outcome_of(self, submit: Callable[[Done], None]) -> Any:
        handed_over: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()

        def done(outcome: Any) -> None:
            if not handed_over.done():  # it is done already where the caller has gone
                handed_over.set_result([outcome])

        submit(done)
        outcome = (await handed_over).pop()
        if not isinstance(outcome, Exception):
            return outcome
        try:
            raise outcome
        finally:
            del outcome  # with it, error and traceback would hold each other in memory

    def submit_request(
        self,
        request: RankRequest,
        done: Done,
        *,
        body: bytes | None = None,
        answer: Callable[..., Any] = RankAnswer.of,
    ) -> None:
        """Order the items of a request, here or in a thread; ``done`` gets the answer, or an exception, once the list is on disk.

        Parameters
        ----------
        request
            Query, items and cutoff.
        done
            Called in the event loop.
        body
            The request as it came, which the log keeps; None where it did not come as JSON.
        answer
            Makes the answer of the list, when it began, and whether it is logged.
        """
        start = time.perf_counter_ns()
        request.check_names()
        if (draws := len(request.items) * request.propensity_draws) > self.config.max_item_draws:
            raise RankPolicyError(
                f"items times propensity_draws must be at most {self.config.max_item_draws:,}; got {draws:,}. "
                "Ask for fewer draws, or send fewer items."
            )
        ranking_id = request.ranking_id or time_ordered_id()
        live = self.policies.chosen(request.policy, request.user or ranking_id)
        # Requests with an id of their own are compared by what they say, not by how their client writes JSON.
        encoded = body if request.ranking_id is None and body is not None else ENCODER.encode(request)
        change = self.policies.change  # what is served may change while a thread orders the items

        def log_list(ordered: Ordered) -> None:
            new = self._new_ranking(ranking_id, request, live, ordered, encoded=encoded, change=change)
            self._hand_over_soon(new, self._answered(new, start, done, answer))

        ordered = None
        if live.policy.is_quick or self.config.rank_budget_seconds is None:
            ordered = live.order_soon(request, generator=self._generators.at(ranking_id))
        if ordered is not None:
            log_list(ordered)
            return

        async def order_and_store() -> None:
            try:
                log_list(await self._ordered_in_thread(live, request, generator_of(self._secret, ranking_id)))
            except Exception as error:
                done(error)

        assert self._loop is not None
        task = self._loop.create_task(order_and_store())
        self._rankings.add(task)  # the event loop itself would forget it
        task.add_done_callback(self._rankings.discard)

    def submit_events(self, events: list[NewEvent], done: Done) -> None:
        """Store events; ``done`` gets the answer, or an exception, once they are on disk.

        Parameters
        ----------
        events
            The events.
        done
            Called in the event loop.
        """
        for event in events:
            if "\0" in event.event_id or "\0" in event.ranking_id:
                raise RankPolicyError(f"ids must not hold the character U+0000; got {event.event_id!r:.80}.")

        def stored(outcome: Any) -> None:
            done(outcome if isinstance(outcome, Exception) else EventsAnswer.of(events, outcome))

        self._hand_over_soon(NewEvents(events=events, window=self.config.window), stored)

    def _answered(self, new: NewRanking, start: int, done: Done, answer: Callable[..., Any]) -> Done:
        def stored(outcome: Any) -> None:
            if not isinstance(outcome, Exception):
                done(answer(outcome.shown, start, logged=True))
            elif isinstance(outcome, TooLateError) or (
                isinstance(outcome, UnavailableError | DamagedStoreError) and self.journal.failure is not None
            ):
                # The disk is full, broken or stalled, or the log damaged, and not just busy: users shall see a list even so.
                self.num_unlogged += 1
                done(answer(new.shown, start, logged=False))
            else:
                done(outcome)

        return stored

    async def _ordered_in_thread(
        self, live: LivePolicy, request: RankRequest, generator: np.random.Generator
    ) -> Ordered:
        """The list of a slow policy, ordered in a thread; the caller's order where it takes too long."""
        came = time.monotonic()

        def ordered_in_turn() -> Ordered:
            if time.monotonic() - came > self.config.queue_seconds:
                raise UnavailableError("more lists come than can be ordered. Send it again later.")
            return live.order(request, generator=generator)

        threads = self._draws if request.propensity_draws else self._slow
        order = asyncio.get_running_loop().run_in_executor(threads, ordered_in_turn)
        try:
            # One whose time has passed leaves the queue: ordering it would only delay the others.
            return await asyncio.wait_for(order, self.config.rank_budget_seconds)
        except TimeoutError:
            names = [item.id for item in request.items[: request.cutoff]]
            return Ordered(items=names, mode="fallback", no_propensities="the policy took longer than the time budget")
        except UnavailableError:
            self.num_shed += 1
            raise

    def _new_ranking(
        self, ranking_id: str, request: RankRequest, live: LivePolicy, ordered: Ordered, *, encoded: bytes, change: int
    ) -> NewRanking:
        fields = msgspec.structs.asdict(ordered)
        version = live.version
        if ordered.mode == "served" and version.number == self.policies.routing.deployed[version.policy].canary:
            fields["mode"] = "canary"
        shown = ShownList(
            **fields,
            ranking_id=ranking_id,
            policy=version.policy,
            policy_version=version.number,
            query=request.query,
            model_sha256=live.policy.model_sha256,
            requested=request.policy or self.policies.default,
            change=change,
        )
        return NewRanking(
            shown=shown,
            version=version.key,
            request=encoded,
            request_hash=blake2b(encoded, digest_size=16).digest(),
            window=self.config.window
            if live.policy.window_seconds is None
            else round(1e6 * live.policy.window_seconds),
            learns=live.policy.learns and bool(ordered.items) and ordered.mode != "fallback",
            has_fresh_id=request.ranking_id is None,
        )

    async def changed(self, change: Callable[[Store, int], Change]) -> Change:
        """Make a change of what is served, and serve it before this returns.

        Parameters
        ----------
        change
            Called with a store and the time, in a thread.
        """
        served: Change = await asyncio.to_thread(self.with_store, change)
        await self.refresh()
        return served

    async def refresh(self) -> None:
        """Serve what the log of changes says; another process may have written it."""
        async with self._refreshing:
            missing = await self.read(self.policies.missing)
            added = await asyncio.to_thread(self._made_versions, missing) if missing else []
            changes, versions = await self.read(lambda store: (store.changes(), store.versions()))
            self.policies.adopt(added, changes, versions)

    def _made_versions(self, missing: list[PolicyVersion]) -> list[LivePolicy]:
        def restored(store: Store, now: int) -> list[LivePolicy]:
            policies = [(version, policy_of_version(version, store.model)) for version in missing]
            for _, policy in policies:
                policy.warm_up()
            return [LivePolicy(version=version, policy=policy) for version, policy in policies]

        versions: list[LivePolicy] = self.with_store(restored)
        return versions

    def with_store(self, use: Callable[[Store, int], Any]) -> Any:
        """Call with a separate store, which may write while the journal does, and the time. Not for the event loop: it may wait.

        Parameters
        ----------
        use
            What to call; its result is returned.
        """
        with closing(open_store(self.config.place, role="keys")) as store:
            return use(store, self.clock.now())

    async def _watch(self) -> None:
        """Notice changes that other processes make, such as the command line."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            self._look_began = time.monotonic()
            try:
                if await self.read(self._looked) != self.policies.change:
                    await self.refresh()
                self._unreadable = None
            except Exception as error:  # what is served now is served further
                if self._unreadable is None:
                    self._report(f"a change of what is served could not be followed: {error}")
                self._unreadable = str(error)
            self._look_began = None

    def _looked(self, store: Store) -> int:
        for look in self._looks:
            look()
        return store.last_change()

    def at_each_look(self, look: Callable[[], None]) -> None:
        """Have something else read each time that changes are looked for, in the same thread.

        Parameters
        ----------
        look
            Called about once per second, in a thread.
        """
        self._looks.append(look)

    async def read(self, use: Callable[[Store], ReadT]) -> ReadT:
        """What a function reads of the log. In a thread: a disk or a database may not answer, and lists are shown even so.

        Parameters
        ----------
        use
            Called with a store that only reads.
        """
        return await asyncio.get_running_loop().run_in_executor(self._reads, use, self.reader)

    def _check_rows(self) -> None:
        """Check every row of the log once, in small steps between requests: a start reads only what came after the snapshots."""
        try:
            with closing(open_store(self.config.place, role="reader")) as store:
                for _ in store.checked_blocks():
                    if self._ending.wait(_SECONDS_BETWEEN_BLOCKS):
                        return
        except DamagedStoreError as error:
            self._damage = str(error)
            self._report(self._damage)
        except Exception as error:  # the database cannot be read now; the next start checks it
            self._report(f"the rows of the log could not be checked: {error}")

    async def work(self, job: str, document: Any, *, author: str) -> dict[str, Any]:
        """Have a job done by a separate process, so that ranking is not held up; one at a time.

        Parameters
        ----------
        job
            "evaluate" or "retrain".
        document
            Its settings, as JSON can hold them.
        author
            Who asked for it, for the audit log.
        """
        if self._working.locked():
            raise UnavailableError("another evaluation or training is running. Send it again later.")
        async with self._working:
            message = {"job": job, "db": self.config.place, "wanted": document, "author": author}
            result = await asyncio.to_thread(run_job, message, started=self._job_started)
            await self.refresh()
            return result

    def _job_started(self, process: subprocess.Popen[bytes]) -> None:
        self._job = process
        if self._was_stopped:
            process.kill()

    async def _retrain(self, plan: Retrain) -> None:
        """Retrain on schedule; a restart does not move the schedule."""
        while True:
            try:
                changes = await self.read(lambda store: store.changes())
                done = [
                    change.stamp for change in changes if (change.action, change.policy) == ("retrain", plan.policy)
                ]
                last = done[-1] if done else self._started
                await asyncio.sleep(max(0.0, (last - self.clock.now()) / 1e6 + plan.every_hours * 3600))
                await self.work("retrain", asdict(plan), author="retraining")
            except UnavailableError:
                await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            except Exception as error:
                self._report(f"retraining of {plan.policy} failed: {error}")
                await asyncio.to_thread(self.with_store, partial(_note_failure, plan.policy, str(error)))

    async def _delete_old(self, days: float) -> None:
        """Delete what is too old, every hour."""

        def delete(store: Store, now: int) -> int:
            return delete_older_than(store, days, now=now)

        while True:
            try:
                await asyncio.to_thread(self.with_store, delete)
            except Exception as error:
                self._report(f"old lists could not be deleted: {error}")
            await asyncio.sleep(SECONDS_BETWEEN_DELETIONS)

    def _hand_over_soon(self, work: NewRanking | NewEvents, done: Done) -> None:
        assert self._loop is not None
        if not self._handed_over:  # everything that this turn of the event loop reads goes to the journal at once
            self._loop.call_soon(self._hand_over)
            self._turn_began = self._loop.time()
        self._handed_over.append((work, done))

    def check_load(self) -> None:
        """Refuse a request that has waited too long before it was read: it had come when the event loop began this turn."""
        assert self._loop is not None
        is_crowded = len(self._handed_over) >= _MOST_TAKEN_AT_ONCE
        if is_crowded and self._loop.time() - self._turn_began > self.config.shed_seconds:
            self.num_shed += 1
            raise UnavailableError("more requests come than can be answered. Send it again later.")

    def _hand_over(self) -> None:
        pieces, self._handed_over = self._handed_over, []
        self.journal.submit_all(pieces)


def _note_failure(policy: str, reason: str, store: Store, now: int) -> None:
    store.add_change("retraining", "retrain", policy, detail=f"failed: {reason}"[:4_000], now=now)
