"""Members of a blend: fitted side by side within a time limit, and their scores on one scale."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.heap import give_back_freed_memory
from rankpolicy.interruption import Interruption
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.blending.blend import spread_within_queries
from rankpolicy.rankers.blending.gating import Columns, read_columns
from rankpolicy.threads import one_thread_each
from rankpolicy.training import Callback, TrainingProgress
from rankpolicy.types import RankPolicyError

Floats = NDArray[np.float64]
_SHARE_OF_FITS = 0.9  # of the time limit; the rest is for scores and choices
_SHARE_OF_GATE = 0.1  # of the time that is left, to choose the features that networks read


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Training and validation data of a member."""

    train: RankingDataset
    valid: RankingDataset | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A fitted ranker and its place in the blend."""

    method: str
    part: int
    ranker: Ranker
    columns: Columns | None
    spread: float
    seconds: float

    def raw_scores(self, dataset: RankingDataset) -> Floats:
        """Scores (items,) as the ranker gives them."""
        return np.asarray(self.ranker._scores(read_columns(dataset, self.columns)), np.float64)

    def scores(self, dataset: RankingDataset) -> Floats:
        """Scores (items,) on the common scale; 0 from a member that orders nothing."""
        if self.spread == 0:
            return np.zeros(dataset.num_items)
        return self.raw_scores(dataset) / self.spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A member to fit."""

    method: str
    part: int
    ranker: Ranker
    is_gated: bool = False


class Stop(Callback):
    """Ends a training, also within an epoch."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over

    def is_over(self) -> bool:
        """Whether to end the epoch."""
        return self._is_over()

    def on_iteration(self, progress: TrainingProgress) -> bool:
        """Whether to end the training."""
        return self._is_over()


ChooseColumns = Callable[[Part, Stop], Columns | None]
Found = Member | tuple[Task, RankPolicyError]


class Clock:
    """A time limit, shared out over the fits that are still to come."""

    def __init__(self, limit: float | None, interruption: Interruption | None = None) -> None:
        self._interruption = interruption or Interruption()
        self._started = time.monotonic()
        self._end = None if limit is None else self._started + _SHARE_OF_FITS * limit
        self._is_over = threading.Event()

    @property
    def seconds_left(self) -> float:
        """Seconds until fits must end."""
        return np.inf if self._end is None else self._end - time.monotonic()

    def stop_after(self, seconds: float) -> Stop:
        """A callback that ends a training after so many seconds, or when all are to end."""
        end = time.monotonic() + seconds
        return Stop(lambda: self._is_over.is_set() or self._interruption.is_requested or time.monotonic() >= end)

    def stop_all(self) -> None:
        """End all trainings after their present iteration."""
        self._is_over.set()


def fit_rounds(
    rounds: Sequence[Sequence[Task]],
    parts: Sequence[Part],
    clock: Clock,
    *,
    num_workers: int = 1,
    choose_columns: ChooseColumns | None = None,
) -> Generator[tuple[tuple[int, int], Found], None, None]:
    """Fit the tasks round by round; give the place of each (round, task) and its member, or the error where its method refuses the data.

    Each fit may take its share of the time that is left to the tasks of its round. A further round is begun when a worker has nothing else
    to do, and only if there is time for it, by what the fits of its methods took before. Members do not depend on the number of workers,
    unless time is short.
    """
    work = _Rounds(rounds, parts, clock, num_workers, choose_columns)
    threads_before = torch.get_num_threads()
    pool = ThreadPoolExecutor(num_workers) if num_workers > 1 else _SameThread()
    running: dict[Future[Found], tuple[int, int]] = {}
    try:
        while True:
            while len(running) < num_workers and (place := work.next_place()) is not None:
                running[pool.submit(work.fit, place, work.share(place))] = place
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=running.__getitem__):
                place = running.pop(future)
                found = future.result()
                work.note(found)
                yield place, found
    finally:
        clock.stop_all()
        pool.shutdown(wait=True, cancel_futures=True)
        # What a thread sets is also what later threads of torch begin with.
        torch.set_num_threads(threads_before)


class _SameThread(ThreadPoolExecutor):
    """Runs at once what it is given."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **options))
        return future


class _Rounds:
    """Which task comes next, and what is known of those that are done."""

    def __init__(
        self,
        rounds: Sequence[Sequence[Task]],
        parts: Sequence[Part],
        clock: Clock,
        num_workers: int,
        choose_columns: ChooseColumns | None,
    ) -> None:
        self.rounds, self.parts, self.clock = rounds, parts, clock
        self.num_workers, self.choose_columns = num_workers, choose_columns
        self.waiting: list[tuple[int, int]] = []
        self.num_begun = 0
        self.columns: dict[int, Columns | None] = {}
        self.seconds: dict[str, float] = {}
        self.gate_lock = threading.Lock()

    def task(self, place: tuple[int, int]) -> Task:
        return self.rounds[place[0]][place[1]]

    def next_place(self) -> tuple[int, int] | None:
        """The next task, of the next round if all of those begun are taken; None if there is none, or no time."""
        while not self.waiting and self._begin_round():
            pass
        return self.waiting.pop(0) if self.waiting else None

    def _begin_round(self) -> bool:
        if self.num_begun >= len(self.rounds):
            return False
        tasks = self.rounds[self.num_begun]
        needed = [self.seconds.get(task.method, 0.0) for task in tasks]
        if self.clock.seconds_left < max(sum(needed) / self.num_workers, *needed, 0.0):
            self.num_begun = len(self.rounds)
            return False
        places = [(self.num_begun, number) for number in range(len(tasks))]
        self.waiting += places
        self.num_begun += 1
        return True

    def note(self, found: Found) -> None:
        """A task is done."""
        if isinstance(found, Member):
            self.seconds[found.method] = max(self.seconds.get(found.method, 0.0), found.seconds)

    def share(self, place: tuple[int, int]) -> float:
        """The share that a task has in the time that is left."""
        return min(1.0, self.num_workers / (1 + sum(other[0] == place[0] for other in self.waiting)))

    def fit(self, place: tuple[int, int], share: float) -> Found:
        """Fit the member of a task; the one method that runs in several threads at once."""
        task, started = self.task(place), time.monotonic()
        stop = self.clock.stop_after(max(0.0, share * self.clock.seconds_left))
        try:
            with one_thread_each():  # also a single worker: the number of threads changes the last bits of sums
                columns = self._columns_of(task.part) if task.is_gated else None
                return _fitted(task, self.parts[task.part], columns, stop, started)
        except RankPolicyError as error:
            return task, error
        finally:
            give_back_freed_memory()

    def _columns_of(self, part: int) -> Columns | None:
        if self.choose_columns is None:
            return None
        with self.gate_lock:
            if part not in self.columns:
                stop = self.clock.stop_after(max(0.0, _SHARE_OF_GATE * self.clock.seconds_left))
                self.columns[part] = self.choose_columns(self.parts[part], stop)
            return self.columns[part]


def _fitted(task: Task, part: Part, columns: Columns | None, stop: Stop, started: float) -> Member:
    train, valid = read_columns(part.train, columns), None
    if part.valid is not None:
        valid = read_columns(part.valid, columns)
    task.ranker.fit(train, valid=valid, callbacks=[stop], progress=False)
    measured = train if valid is None else valid
    return Member(
        method=task.method,
        part=task.part,
        ranker=task.ranker,
        columns=columns,
        spread=spread_within_queries(np.asarray(task.ranker._scores(measured), np.float64), measured),
        seconds=time.monotonic() - started,
    )


def mean_scores(members: Sequence[Member], dataset: RankingDataset) -> Floats:
    """Mean over methods of the mean over their members (items,), so that a method with more members does not count more."""
    by_method: dict[str, list[Floats]] = {}
    for member in members:
        by_method.setdefault(member.method, []).append(member.scores(dataset))
    return np.asarray(np.mean([np.mean(scores, axis=0) for scores in by_method.values()], axis=0), np.float64)
