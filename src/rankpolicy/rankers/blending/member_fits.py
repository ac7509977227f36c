"""Members of a blend: fitted one after the other within a time limit, and their scores on one scale."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.blending.blend import spread_within_queries
from rankpolicy.types import RankPolicyError

Floats = NDArray[np.float64]
_SHARE_OF_FITS = 0.9  # of the time limit; the rest is for scores and choices


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Training and validation data of a member.

    Parameters
    ----------
    train
        What it learns from.
    valid
        What says when to stop; None: nothing does.
    """

    train: RankingDataset
    valid: RankingDataset | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A fitted ranker and its place in the blend.

    Parameters
    ----------
    method
        Its method.
    part
        The number of the part of the data it was fitted on.
    ranker
        The fitted ranker.
    spread
        Standard deviation of its scores within the queries it was validated on; 0 where it orders nothing.
    seconds
        How long the fit took.
    """

    method: str
    part: int
    ranker: Ranker
    spread: float
    seconds: float

    def scores(self, dataset: RankingDataset) -> Floats:
        """Scores (items,) on the common scale; 0 from a member that orders nothing."""
        if self.spread == 0:
            return np.zeros(dataset.num_items)
        return self.ranker._scores(dataset) / self.spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A member to fit.

    Parameters
    ----------
    method
        Its method.
    part
        The number of the part of the data.
    ranker
        The unfitted ranker.
    """

    method: str
    part: int
    ranker: Ranker


class Clock:
    """A time limit, shared out over the fits that are still to come.

    Parameters
    ----------
    limit
        Seconds for everything; None: no limit.
    """

    def __init__(self, limit: float | None) -> None:
        self._started = time.monotonic()
        self._end = None if limit is None else self._started + _SHARE_OF_FITS * limit

    @property
    def seconds_left(self) -> float:
        """Seconds until fits must end."""
        return np.inf if self._end is None else self._end - time.monotonic()

    def stop_after(self, seconds: float) -> Callable[[Any], bool]:
        """A callback that ends a training after so many seconds."""
        end = time.monotonic() + seconds
        return lambda progress: time.monotonic() >= end


def fit_rounds(
    rounds: Sequence[Sequence[Task]], parts: Sequence[Part], clock: Clock
) -> Iterator[Member | tuple[Task, RankPolicyError]]:
    """Fit the tasks round by round, and give each member, or the error of a task whose data its method refuses.

    Within a round each fit may take its share of the time that is left. A further round is begun only if there is time for it, by what the
    fits of its methods took before.

    Parameters
    ----------
    rounds
        The tasks; all tasks of a round belong together.
    parts
        The parts of the data that tasks refer to by number.
    clock
        The time limit.
    """
    seconds: dict[str, float] = {}
    for tasks in rounds:
        if clock.seconds_left < sum(seconds.get(task.method, 0.0) for task in tasks):
            return
        for place, task in enumerate(tasks):
            started = time.monotonic()
            stop = clock.stop_after(max(0.0, clock.seconds_left / (len(tasks) - place)))
            try:
                yield _fitted(task, parts[task.part], stop)
            except RankPolicyError as error:
                yield task, error
            seconds[task.method] = max(seconds.get(task.method, 0.0), time.monotonic() - started)


def _fitted(task: Task, part: Part, stop: Callable[[Any], bool]) -> Member:
    started = time.monotonic()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "this learns from clicks as they are")  # the blend has said so
        task.ranker.fit(part.train, valid=part.valid, callbacks=[stop], progress=False)
    measured = part.train if part.valid is None else part.valid
    return Member(
        method=task.method,
        part=task.part,
        ranker=task.ranker,
        spread=spread_within_queries(task.ranker._scores(measured), measured),
        seconds=time.monotonic() - started,
    )


def mean_scores(members: Sequence[Member], dataset: RankingDataset) -> Floats:
    """Mean over methods of the mean over their members (items,), so that a method with more members does not count more."""
    by_method: dict[str, list[Floats]] = {}
    for member in members:
        by_method.setdefault(member.method, []).append(member.scores(dataset))
    return np.asarray(np.mean([np.mean(scores, axis=0) for scores in by_method.values()], axis=0), np.float64)
