"""The one thread that writes: it gathers what came meanwhile, commits it together, learns, and only then says so."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from rankpolicy.service.clock import Clock
from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.live import LivePolicies
from rankpolicy.service.records import NewEvents, NewRanking
from rankpolicy.service.served_store import ServedStore

MOST_WAITING = 10_000  # pieces of work; more are refused, so that memory is bounded and nobody waits for long
MOST_AT_ONCE = 1_000  # pieces of work in one transaction
MOST_EVENTS_AT_ONCE = 20_000  # events in one transaction; one piece may have more
_LONGEST_PAUSE = 1.0  # seconds between looks at the windows

Work = NewRanking | NewEvents
Done = Callable[[Any], None]
Deliver = Callable[[list[tuple[Done, Any]]], None]


def deliver_here(outcomes: list[tuple[Done, Any]]) -> None:
    """Call back in the thread of the journal.

    Parameters
    ----------
    outcomes
        Functions and what to call them with.
    """
    for done, outcome in outcomes:
        done(outcome)


class Journal:
    """Group commit: while one transaction is on its way to the disk, the next gathers.

    What a policy knows in memory is always the fold of what is committed: lessons are applied after the commit that holds them, and an
    outcome is delivered after that. After a failure nothing in memory is trusted: the log is read again.

    Parameters
    ----------
    store
        The log; from now on only this thread uses it.
    policies
        Who learns.
    clock
        The time of the service.
    deliver
        How outcomes reach who waits for them, once per transaction.
    snapshot_every
        Lessons between snapshots of a policy.
    report
        Called with a sentence when something fails.
    """

    def __init__(
        self,
        store: ServedStore,
        policies: LivePolicies,
        clock: Clock,
        *,
        deliver: Deliver = deliver_here,
        snapshot_every: int = 100_000,
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._store, self._policies, self._clock = store, policies, clock
        self._deliver, self._report = deliver, report
        self._snapshot_every = snapshot_every
        self._waiting: queue.SimpleQueue[tuple[Work, Done] | None] = queue.SimpleQueue()
        self._next_deadline: int | None = 0  # look at once
        self._stopping = False
        self._begin_again = False
        self.failure: str | None = None  # why nothing can be stored at the moment
        self.num_commits = 0
        self.num_lessons = 0
        self._thread = threading.Thread(target=self._run, name="rankpolicy journal", daemon=True)

    @property
    def num_waiting(self) -> int:
        """Pieces of work that wait for a commit."""
        return self._waiting.qsize()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Commit what waits, keep snapshots, and end the thread."""
        self._stopping = True
        self._waiting.put(None)
        self._thread.join()
        left: list[tuple[Done, Any]] = []  # what came while the thread ended
        with suppress(queue.Empty):
            while True:
                if (piece := self._waiting.get_nowait()) is not None:
                    left.append((piece[1], UnavailableError("the service is stopping. Send it again later.")))
        self._deliver(left)

    def submit(self, work: Work, done: Done) -> None:
        """Have something stored; ``done`` is called with the outcome, or with an exception, when it is on disk or refused.

        Parameters
        ----------
        work
            A list, or events.
        done
            Called once.
        """
        refusal = self._refusal()
        if refusal is not None:
            raise refusal
        self._waiting.put((work, done))

    def submit_all(self, pieces: Sequence[tuple[Work, Done]]) -> None:
        """Have several things stored; what is refused is told at once.

        Parameters
        ----------
        pieces
            Each a list or events, and what is called with the outcome.
        """
        for work, done in pieces:
            refusal = self._refusal()
            if refusal is None:
                self._waiting.put((work, done))
            else:
                done(refusal)

    def write(self, work: Work) -> Any:
        """Have something stored, and wait for it: the outcome.

        Parameters
        ----------
        work
            A list, or events.
        """
        waiting: Future[Any] = Future()
        self.submit(work, waiting.set_result)
        outcome = waiting.result()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _refusal(self) -> UnavailableError | None:
        if self._stopping:
            return UnavailableError("the service is stopping. Send it again later.")
        if self._waiting.qsize() >= MOST_WAITING:
            return UnavailableError(f"{MOST_WAITING} requests wait already. Send it again later.")
        return None

    def _run(self) -> None:
        while not (self._stopping and self._waiting.empty()):
            batch = self._gather()
            if batch or self._is_due():
                self._commit(batch)
        self._keep_snapshots(every=1)

    def _gather(self) -> list[tuple[Work, Done]]:
        batch: list[tuple[Work, Done]] = []
        num_events = 0
        with suppress(queue.Empty):
            piece = self._waiting.get(timeout=self._pause())
            while True:
                if piece is not None:
                    batch.append(piece)
                    num_events += len(piece[0].events) if isinstance(piece[0], NewEvents) else 0
                if len(batch) >= MOST_AT_ONCE or num_events >= MOST_EVENTS_AT_ONCE:
                    break
                piece = self._waiting.get_nowait()
        return batch

    def _pause(self) -> float:
        if self._next_deadline is None:
            return _LONGEST_PAUSE
        return min(_LONGEST_PAUSE, max(0.0, (self._next_deadline - self._clock.now()) / 1e6 + 1e-3))

    def _is_due(self) -> bool:
        return self._next_deadline is not None and self._next_deadline < self._clock.now()

    def _commit(self, batch: list[tuple[Work, Done]]) -> None:
        try:
            outcomes = self._committed([work for work, _ in batch])
        except UnavailableError as error:
            self._fail(error, batch)
            return
        except Exception as error:
            if len(batch) <= 1:
                self._fail(error, batch)
                return
            for piece in batch:  # one of them cannot be stored: the others shall not suffer
                self._commit([piece])
            return
        self._deliver([(done, outcome) for (_, done), outcome in zip(batch, outcomes, strict=True)])
        self._keep_snapshots(every=self._snapshot_every)

    def _committed(self, work: Sequence[Work]) -> Sequence[Any]:
        if self._begin_again:
            self._store.reopen()
            self._policies.catch_up(self._store)
        self._begin_again = True  # until all of this is done
        committed = self._store.commit(work, now=self._clock.now())
        self._policies.learn(committed.lessons)
        self._begin_again = False
        self._next_deadline = committed.next_deadline
        self.num_commits += 1
        self.num_lessons += len(committed.lessons)
        self.failure = None
        return committed.outcomes

    def _fail(self, error: Exception, batch: list[tuple[Work, Done]]) -> None:
        # A commit that failed may still be on disk, so nothing remembered is trusted: the log is read again before the next one.
        self._begin_again = True
        self._next_deadline = self._clock.now() + 1_000_000
        self.failure = f"{type(error).__name__}: {error}"
        self._report(self.failure)
        self._deliver([(done, error) for _, done in batch])

    def _keep_snapshots(self, *, every: int) -> None:
        if self._begin_again:
            return
        try:
            for snapshot in self._policies.snapshots(every=every):
                self._store.save_snapshot(snapshot, now=self._clock.now())
        except Exception as error:  # the log has everything that a snapshot has
            self._report(f"a snapshot could not be kept: {error}")
