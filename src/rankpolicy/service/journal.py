"""Everything is written here: what came meanwhile is committed together, learned, and only then answered."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from rankpolicy.service.clock import Clock
from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.live import LivePolicies
from rankpolicy.service.records import Committed, NewEvents, NewRanking
from rankpolicy.service.served_store import ServedStore

MOST_WAITING = 10_000  # pieces of work; more are refused, so that memory is bounded and nobody waits for long
MOST_AT_ONCE = 1_000  # pieces of work in one transaction
MOST_EVENTS_AT_ONCE = 20_000  # events in one transaction; one piece may have more
MOST_IN_LOOP = 128  # lists and events in a transaction of the event loop: a few milliseconds
_BYTES_PER_EVENT = 4_000  # a request of so many bytes takes as long as another event
_LONGEST_PAUSE = 1.0  # seconds between looks at the windows
_GRACE = 100_000  # microseconds that the thread leaves the event loop to end a window; under load it always does
_STOPPING = "the service is stopping. Send it again later."

Work = NewRanking | NewEvents
Done = Callable[[Any], None]
Piece = tuple[Work, Done]
Call = Callable[[Callable[[], None]], None]


class Journal:
    """Group commit: what one turn of the event loop has read is one transaction, and what comes meanwhile the next.

    A thread beside a busy event loop waits for its turn at every statement, longer than the statement takes. So the event loop commits
    small transactions itself (``submit_all``). A thread does what takes long or may have to wait: many events at once, a database that
    another process writes or a server holds, failures and the log that is read again after them, windows that end while nobody asks
    anything, and snapshots. One of the two uses the store at a time.

    What a policy knows in memory is always the fold of what is committed: lessons are applied after the commit that holds them, and an
    outcome is delivered after that. After a failure nothing in memory is trusted: the log is read again.

    Parameters
    ----------
    store
        The log; from now on only the journal uses it.
    policies
        Who learns.
    clock
        The time of the service.
    call
        Has a function called in the event loop; None where there is none, and the thread calls back.
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
        call: Call | None = None,
        snapshot_every: int = 100_000,
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._store, self._policies, self._clock = store, policies, clock
        self._call: Call = call or (lambda function: function())
        self._report = report
        self._snapshot_every = snapshot_every
        self._held: list[Piece] = []  # in the event loop, while the thread uses the store
        self._waiting: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()  # for the thread
        self._writing = threading.Lock()  # held by who uses the store, until all is learned
        self._next_deadline: int | None = 0  # look at once
        self._wakes_at = 0  # when the thread looks at the windows
        self._stopping = False
        self._begin_again = False
        self.failure: str | None = None  # why nothing can be stored at the moment
        self.num_commits = 0
        self.num_lessons = 0
        self._thread = threading.Thread(target=self._run, name="rankpolicy journal", daemon=True)

    @property
    def num_waiting(self) -> int:
        """Pieces of work that wait for a commit."""
        return len(self._held) + self._waiting.qsize()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Commit what waits, keep snapshots, and end the thread."""
        self._stopping = True
        self._waiting.put(None)
        self._thread.join()
        with self._writing:
            pass  # the last transaction of the event loop has ended, and it begins no other
        self._call(self._refuse_rest)

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

    def submit_all(self, pieces: Sequence[Piece]) -> None:
        """Have several things stored, by the event loop where they are few. Called in the event loop.

        Parameters
        ----------
        pieces
            Each a list or events, and what is called with the outcome, at once where it is refused.
        """
        refusal = self._refusal()
        if refusal is None:
            self._held += pieces
            self._store_held()
        else:
            self._deliver([(done, refusal) for _, done in pieces])

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
            return UnavailableError(_STOPPING)
        if self.num_waiting >= MOST_WAITING:
            return UnavailableError(f"{MOST_WAITING} requests wait already. Send it again later.")
        return None

    def _refuse_rest(self) -> None:
        """Refuse what came while the thread ended. Called in the event loop, so nothing is handed over meanwhile."""
        left, self._held = self._held, []
        with suppress(queue.Empty):
            while True:
                if (piece := self._waiting.get_nowait()) is not None:
                    left.append(piece)
        refusal = UnavailableError(_STOPPING)
        self._deliver([(done, refusal) for _, done in left])

    def _store_held(self) -> None:
        """Commit what is held, or leave it to the thread where it takes long. The thread calls this when its own work is done."""
        if not self._held or not self._writing.acquire(blocking=False):
            return
        try:
            if self._stopping:  # what is held is refused when the thread has ended
                return
            batch = self._taken()
            committed = self._committed_here(batch)
            if committed is None:
                for piece in batch:
                    self._waiting.put(_tried(piece) if self._begin_again else piece)
        finally:
            self._writing.release()
        if committed is not None:
            self._deliver(_with_outcomes(batch, committed))
        is_late = self._next_deadline is not None and self._next_deadline + _GRACE < self._wakes_at
        if is_late or self._policies.want_snapshots(every=self._snapshot_every):
            self._waiting.put(None)
        if self._held:
            self._call(self._store_held)

    def _taken(self) -> list[Piece]:
        """The first of what is held, as much as is committed in the event loop, but at least one piece."""
        num, size = 1, _size(self._held[0])
        while num < len(self._held) and (size := size + _size(self._held[num])) <= MOST_IN_LOOP:
            num += 1
        batch, self._held = self._held[:num], self._held[num:]
        return batch

    def _committed_here(self, batch: list[Piece]) -> Committed | None:
        if self._begin_again or not self._policies.learn_quickly or _size(batch[0]) > MOST_IN_LOOP:
            return None
        try:
            self._begin_again = True  # until all of this is done
            committed = self._store.commit_soon([work for work, _ in batch], now=self._clock.now())
            if committed is None:
                self._begin_again = False
            else:
                self._learn(committed)
        except Exception as error:  # failures are handled in one place: the thread reads the log and tries again
            self._report(f"a transaction is tried again: {type(error).__name__}: {error}")
            return None
        return committed

    def _run(self) -> None:
        while not (self._stopping and self._waiting.empty()):
            batch = self._gather()
            if batch or self._is_due() or self._policies.want_snapshots(every=self._snapshot_every):
                with self._writing:
                    self._commit(batch)
                    self._keep_snapshots(every=self._snapshot_every)
                if self._held:
                    self._call(self._store_held)
        with self._writing:  # the event loop may be at its last transaction
            self._keep_snapshots(every=1)

    def _gather(self) -> list[Piece]:
        batch: list[Piece] = []
        num_events = 0
        with suppress(queue.Empty):
            pause = self._pause()
            self._wakes_at = self._clock.now() + round(1e6 * pause)
            piece = self._waiting.get(timeout=pause)
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
        return min(_LONGEST_PAUSE, max(0.0, (self._next_deadline + _GRACE - self._clock.now()) / 1e6))

    def _is_due(self) -> bool:
        return self._next_deadline is not None and self._next_deadline + _GRACE <= self._clock.now()

    def _commit(self, batch: list[Piece]) -> None:
        try:
            committed = self._committed([work for work, _ in batch])
        except UnavailableError as error:
            self._fail(error, batch)
            return
        except Exception as error:
            if len(batch) <= 1:
                self._fail(error, batch)
                return
            for piece in batch:  # one of them cannot be stored: the others shall not suffer
                self._commit([_tried(piece)])
            return
        self._call(partial(self._deliver, _with_outcomes(batch, committed)))

    def _committed(self, work: Sequence[Work]) -> Committed:
        if self._begin_again:
            self._store.reopen()
            self._policies.catch_up(self._store)
        self._begin_again = True  # until all of this is done
        committed = self._store.commit(work, now=self._clock.now())
        self._learn(committed)
        return committed

    def _learn(self, committed: Committed) -> None:
        self._policies.learn(committed.lessons)
        self._begin_again = False
        self._next_deadline = committed.next_deadline
        self.num_commits += 1
        self.num_lessons += len(committed.lessons)
        self.failure = None

    def _fail(self, error: Exception, batch: list[Piece]) -> None:
        # A commit that failed may still be on disk, so nothing remembered is trusted: the log is read again before the next one.
        self._begin_again = True
        self._next_deadline = self._clock.now() + 1_000_000
        self.failure = f"{type(error).__name__}: {error}"
        self._report(self.failure)
        self._call(partial(self._deliver, [(done, error) for _, done in batch]))

    def _deliver(self, outcomes: list[tuple[Done, Any]]) -> None:
        for done, outcome in outcomes:
            try:
                done(outcome)
            except Exception as error:  # the others of the transaction get their answers
                self._report(f"an answer could not be given: {type(error).__name__}: {error}")

    def _keep_snapshots(self, *, every: int) -> None:
        if self._begin_again:
            return
        try:
            for snapshot in self._policies.snapshots(every=every):
                self._store.save_snapshot(snapshot, now=self._clock.now())
        except Exception as error:  # the log has everything that a snapshot has
            self._report(f"a snapshot could not be kept: {error}")


def _size(piece: Piece) -> int:
    work = piece[0]
    return len(work.events) if isinstance(work, NewEvents) else 1 + len(work.request) // _BYTES_PER_EVENT


def _tried(piece: Piece) -> Piece:
    """A piece whose transaction failed, perhaps after it was on disk: its id must be looked up now."""
    work, done = piece
    return (msgspec.structs.replace(work, has_fresh_id=False), done) if isinstance(work, NewRanking) else piece


def _with_outcomes(batch: list[Piece], committed: Committed) -> list[tuple[Done, Any]]:
    return [(done, outcome) for (_, done), outcome in zip(batch, committed.outcomes, strict=True)]
