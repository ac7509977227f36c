"""Everything is written here: what came meanwhile is committed together, learned, and only then answered."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import msgspec

from rankpolicy.service.domain.clock import Clock
from rankpolicy.service.domain.records import Committed, NewEvents, NewRanking, Snapshot
from rankpolicy.service.errors import TooLateError, UnavailableError
from rankpolicy.service.learning.live import LivePolicies
from rankpolicy.service.log.store import Store
from rankpolicy.service.log.writer import LONGEST_END, Writer

MOST_WAITING = 10_000  # pieces of work; more are refused, so that memory is bounded and no request waits for long
MOST_AT_ONCE = 1_000  # pieces of work in one transaction
MOST_EVENTS_AT_ONCE = 20_000  # events in one transaction; one piece may have more
MOST_SOON = 512  # lists and events in a transaction for which users wait
_BYTES_PER_EVENT = 4_000  # a request of so many bytes takes as long as another event
_LONGEST_PAUSE = 1.0  # seconds between looks at the windows
_GRACE = 100_000  # microseconds that the thread leaves the event loop to end a window; under load it always does
_STOPPING = "the service is stopping. Send it again later."

_NOT_READY_SECONDS = 1.0  # that the oldest piece waits: then lists are not logged, whatever the reason

Work = NewRanking | NewEvents
Done = Callable[[Any], None]


class Piece:
    """A list or events, from when they are handed over until they are stored or refused."""

    __slots__ = ("done", "is_answered", "is_settled", "since", "work")

    def __init__(self, work: Work, done: Done) -> None:
        self.work, self.done = work, done
        self.since = time.monotonic()
        self.is_answered = False  # perhaps before it is stored: its deadline has passed
        self.is_settled = False  # stored, refused or withdrawn


class Journal:
    """Group commit: what comes while one transaction is written is the next.

    The event loop hands lists and events over and continues; the writer process commits them (``submit_all``). A thread does what has to be
    waited for: failures and the log that is read again after them, windows that end while no request comes, and snapshots. One of the two
    uses the log at a time.

    What a policy knows in memory is always the fold of what is committed: lessons are applied after the commit that holds them, and an
    outcome is delivered after that. After a failure nothing in memory is trusted: the log is read again.
    """

    def __init__(
        self,
        store: Store,
        policies: LivePolicies,
        clock: Clock,
        *,
        writer: Writer,
        snapshot_every: int = 100_000,
        list_seconds: float = 60.0,
        event_seconds: float = 60.0,
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._store, self._policies, self._clock = store, policies, clock
        self._writer = writer
        self._loop: asyncio.AbstractEventLoop | None = None
        self._report = report
        self._snapshot_every = snapshot_every
        self._seconds: dict[type[Work], float] = {NewRanking: list_seconds, NewEvents: event_seconds}
        # Pieces in the order in which they came, those that are answered or settled among them until they are the first.
        self._unanswered: dict[type[Work], deque[Piece]] = {kind: deque() for kind in self._seconds}
        self._unsettled: deque[Piece] = deque()
        self._looks_at_deadlines: asyncio.TimerHandle | None = None
        self._held: list[Piece] = []  # in the event loop, while a transaction is written
        self._waiting: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()  # for the thread
        # Held by the thread or the event loop while it uses the log, until all is learned.
        self._writing = threading.Lock()
        self._next_deadline: int | None = 0  # look at once
        self._wakes_at = 0  # when the thread looks at the windows
        self._stopping = False
        self._begin_again = False
        self.failure: str | None = None  # why nothing can be stored at the moment
        self.num_commits = 0
        self.num_lessons = 0
        self.sync_seconds = 0.0  # of all commits
        self.num_late = 0  # lists and events that were answered before they were stored
        self._thread = threading.Thread(target=self._run, name="rankpolicy journal", daemon=True)
        self._learning = ThreadPoolExecutor(1, "rankpolicy learning")  # of what the event loop shall not wait for

    @property
    def num_waiting(self) -> int:
        """Pieces of work that wait for a commit."""
        return len(self._held) + self._waiting.qsize()

    @property
    def oldest_seconds(self) -> float:
        """How long the oldest piece waits that is not stored yet, be it answered or not. Called in the event loop."""
        while self._unsettled and self._unsettled[0].is_settled:
            self._unsettled.popleft()
        return time.monotonic() - self._unsettled[0].since if self._unsettled else 0.0

    @property
    def problem(self) -> str | None:
        """Why lists are not logged at the moment; None where they are. Called in the event loop."""
        if self.failure is None and (seconds := self.oldest_seconds) > _NOT_READY_SECONDS:
            return f"the disk or database has not answered for {seconds:.1f} seconds"
        return self.failure

    @property
    def num_writer_restarts(self) -> int:
        """How often the process that writes the log was started again."""
        return self._writer.num_restarts

    def start(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Begin to write."""
        self._loop = loop
        if loop is not None:
            self._writer.serve(loop)
        self._thread.start()

    def stop(self) -> None:
        """Commit what waits, keep snapshots, and end the thread."""
        self._stopping = True
        self._waiting.put(None)
        while self._thread.is_alive():
            self._thread.join(LONGEST_END)
            if self._thread.is_alive():
                self._writer.kill()
        self._call(self._refuse_rest)
        self._learning.shutdown()

    def submit_all(self, works: Sequence[tuple[Work, Done]]) -> None:
        """Have several things stored. Called in the event loop."""
        pieces = [Piece(work, done) for work, done in works]
        refusal = self._refusal()
        if refusal is not None:
            self._deliver([(piece, refusal) for piece in pieces])
            return
        if self._loop is not None:
            self._unsettled.extend(pieces)
            for piece in pieces:
                self._unanswered[type(piece.work)].append(piece)
            if self._looks_at_deadlines is None:
                self._answer_late_pieces()
        self._held += pieces
        self._store_held()

    def _refusal(self) -> UnavailableError | None:
        if self._stopping:
            return UnavailableError(_STOPPING)
        if self.num_waiting >= MOST_WAITING:
            return UnavailableError(f"{MOST_WAITING} requests wait already. Send it again later.")
        return None

    def _answer_late_pieces(self) -> None:
        """Answer pieces that waited too long; called again when the next of them may have. Called in the event loop.

        A piece that no transaction has yet is withdrawn: it is never written. One that is being written may be stored after this answer.
        Then the log has a list that was shown as it says, events on it count, and events that are sent again are duplicates.
        """
        assert self._loop is not None
        now, next_look = time.monotonic(), self._seconds[NewRanking]
        for kind, pieces in self._unanswered.items():
            seconds = self._seconds[kind]
            while pieces and (pieces[0].is_answered or pieces[0].since + seconds <= now):
                piece = pieces.popleft()
                if not piece.is_answered:
                    self.num_late += 1
                    reason = f"the log did not take it within {seconds:g} seconds. Send it again later."
                    self._answer(piece, TooLateError(reason))
            if pieces:
                next_look = min(next_look, pieces[0].since + seconds - now)
        is_idle = self.oldest_seconds == 0 and not any(self._unanswered.values())
        self._looks_at_deadlines = None if is_idle else self._loop.call_later(next_look, self._answer_late_pieces)

    def _without_late(self, pieces: list[Piece]) -> list[Piece]:
        """Those of pieces that nothing has written which are still waited for; the others are withdrawn."""
        awaited = []
        for piece in pieces:
            if piece.is_answered:
                piece.is_settled = True
            else:
                awaited.append(piece)
        return awaited

    def _refuse_rest(self) -> None:
        """Refuse what came while the thread ended. Called in the event loop, so nothing is handed over meanwhile."""
        refused, self._held = self._held, []
        with suppress(queue.Empty):
            while True:
                if (piece := self._waiting.get_nowait()) is not None:
                    refused.append(piece)
        refusal = UnavailableError(_STOPPING)
        self._deliver([(piece, refusal) for piece in refused])

    def _store_held(self) -> None:
        """Have the other process commit what is held, unless something is being committed: then this is called again at its end."""
        self._held = self._without_late(self._held)
        if not self._held or not self._writing.acquire(blocking=False):
            return
        if self._stopping:  # what is held is refused when the thread has ended
            self._writing.release()
        elif self._begin_again:
            held, self._held = self._held, []
            for piece in held:
                self._waiting.put(piece)
            self._writing.release()
        else:
            batch = self._taken()
            self._begin_again = True  # until all of this is done
            works = [piece.work for piece in batch]
            self._writer.commit_soon(works, now=self._clock.now(), done=partial(self._stored, batch))

    def _taken(self) -> list[Piece]:
        """The first of what is held, as much as is committed at once, but at least one piece."""
        num, size = 1, _size(self._held[0])
        while num < len(self._held) and (size := size + _size(self._held[num])) <= MOST_SOON:
            num += 1
        batch, self._held = self._held[:num], self._held[num:]
        return batch

    def _stored(self, batch: list[Piece], committed: Committed | BaseException) -> None:
        """Learn and answer. Called in the event loop when the other process is done."""
        outcomes: list[tuple[Piece, Any]] = []
        try:
            if isinstance(committed, BaseException):
                raise committed
            if not self._learn(committed, wait=self._loop is None):
                self._learn_in_thread(batch, committed)
                return
            outcomes = _with_outcomes(batch, committed)
        except Exception as error:  # failures are handled in one place: the thread reads the log and tries again
            self._report(f"a transaction is tried again: {type(error).__name__}: {error}")
            for piece in batch:
                self._waiting.put(_tried(piece))
        self._writing.release()
        self._store_held()  # the next transaction is written while this one is answered
        self._deliver(outcomes)
        is_late = self._next_deadline is not None and self._next_deadline + _GRACE < self._wakes_at
        if is_late or self._policies.want_snapshots(every=self._snapshot_every):
            self._waiting.put(None)

    def _learn_in_thread(self, batch: list[Piece], committed: Committed) -> None:
        """Learn while the event loop continues, and answer then."""

        def learned(learning: Future[bool]) -> None:
            self._call(partial(self._stored, batch, learning.exception() or committed))

        self._learning.submit(self._policies.learn, committed.lessons).add_done_callback(learned)

    def _run(self) -> None:
        while not (self._stopping and self._waiting.empty()):
            batch = self._gather()
            if batch or self._is_due() or self._policies.want_snapshots(every=self._snapshot_every):
                if not self._may_write():
                    return
                with self._free_at_end():
                    self._commit(self._without_late(batch))
                    snapshots = self._copied_snapshots(every=self._snapshot_every)
                finished_snapshots = [snapshot() for snapshot in snapshots]  # lists are written meanwhile
                if finished_snapshots and self._may_write():
                    with self._free_at_end():
                        self._keep_snapshots(finished_snapshots)
        if self._may_write():
            with self._free_at_end():
                self._keep_snapshots([snapshot() for snapshot in self._copied_snapshots(every=1)])

    @contextmanager
    def _free_at_end(self) -> Iterator[None]:
        """Let the event loop use the log again, at once where something came meanwhile."""
        try:
            yield
        finally:
            self._writing.release()
        if self._held:
            self._call(self._store_held)

    def _may_write(self) -> bool:
        """Wait until the transaction of the event loop has ended; False where the loop has ended before it."""
        while not self._writing.acquire(timeout=0.1):
            if self._loop is not None and self._loop.is_closed():
                return False
        return True

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
                    num_events += len(piece.work.events) if isinstance(piece.work, NewEvents) else 0
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
            committed = self._committed([piece.work for piece in batch])
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
            self._writer.reopen()
            self._store.reopen()
            self._policies.catch_up(self._store)
        self._begin_again = True  # until all of this is done
        committed = self._writer.commit(work, now=self._clock.now())
        self._learn(committed)
        return committed

    def _learn(self, committed: Committed, *, wait: bool = True) -> bool:
        """Whether what was committed is learned; it may not be where that takes time, and this thread shall not wait."""
        if not self._policies.learn(committed.lessons, wait=wait):
            return False
        self._begin_again = False
        self._next_deadline = committed.next_deadline
        self.num_commits += 1
        self.sync_seconds += committed.sync_seconds
        self.num_lessons += len(committed.lessons)
        self.failure = None
        return True

    def _fail(self, error: Exception, batch: list[Piece]) -> None:
        # A commit that failed may still be on disk, so nothing remembered is trusted: the log is read again before the next one.
        self._begin_again = True
        self._next_deadline = self._clock.now() + 1_000_000
        self.failure = f"{type(error).__name__}: {error}"
        self._report(self.failure)
        self._call(partial(self._deliver, [(piece, error) for piece in batch]))

    def _call(self, function: Callable[[], None]) -> None:
        """From the thread into the event loop."""
        if self._loop is None:
            function()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    def _deliver(self, outcomes: list[tuple[Piece, Any]]) -> None:
        for piece, outcome in outcomes:
            piece.is_settled = True
            if not piece.is_answered:
                self._answer(piece, outcome)

    def _answer(self, piece: Piece, outcome: Any) -> None:
        piece.is_answered = True
        try:
            piece.done(outcome)
        except Exception as error:  # the others of the transaction get their answers
            self._report(f"an answer could not be given: {type(error).__name__}: {error}")

    def _copied_snapshots(self, *, every: int) -> list[Callable[[], Snapshot]]:
        return [] if self._begin_again else self._policies.copied_snapshots(every=every)

    def _keep_snapshots(self, snapshots: Sequence[Snapshot]) -> None:
        try:
            for snapshot in snapshots:
                self._store.save_snapshot(snapshot, now=self._clock.now())
        except Exception as error:  # the log has everything that a snapshot has
            self._begin_again = True  # another process may commit, and not notice that this one has lost the database
            self._report(f"a snapshot could not be kept: {error}")


def _size(piece: Piece) -> int:
    work = piece.work
    return len(work.events) if isinstance(work, NewEvents) else 1 + len(work.request) // _BYTES_PER_EVENT


def _tried(piece: Piece) -> Piece:
    """A piece whose transaction failed, perhaps after it was on disk: its id must be looked up now."""
    if isinstance(piece.work, NewRanking):
        piece.work = msgspec.structs.replace(piece.work, has_fresh_id=False)
    return piece


def _with_outcomes(batch: list[Piece], committed: Committed) -> list[tuple[Piece, Any]]:
    return list(zip(batch, committed.outcomes, strict=True))
