"""Successive halving: a trial goes on only while it is among the best of those that came before it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rankpolicy.training.callbacks import Callback, TrainingProgress

REDUCTION = 3  # of the trials that reach a rung, one in so many goes on
NUM_RUNGS = 3


def rungs(num_iterations: int) -> tuple[int, ...]:
    """After how many iterations (epochs, trees) trials are compared: a third of all, a ninth, and so on, in ascending order.

    >>> rungs(100), rungs(2)
    ((4, 12, 34), (1,))
    """
    return tuple(sorted({math.ceil(num_iterations / REDUCTION**k) for k in range(1, NUM_RUNGS + 1)} - {num_iterations}))


def cutoffs(curves: Sequence[Sequence[float]], num_iterations: int) -> dict[int, float]:
    """The score that a trial must reach at each rung to be among the best third, given the trials before it.

    A trial that ended before a rung counts there with its best score; one that was stopped before, with what it had.

    >>> cutoffs([[0.1, 0.2], [0.3, 0.3], [0.5, 0.4]], 3)
    {1: 0.5}
    """
    scored = [curve for curve in curves if len(curve)]
    if len(scored) < REDUCTION:
        return {}
    lowest = {}
    for rung in rungs(num_iterations):
        reached = sorted((max(curve[:rung]) for curve in scored), reverse=True)
        lowest[rung] = reached[max(1, len(reached) // REDUCTION) - 1]
    return lowest


class Rungs(Callback):
    """Records the validation score after every iteration, and stops training at a rung where it is below the cutoff."""

    def __init__(self, cutoffs: Mapping[int, float]) -> None:
        self.cutoffs = dict(cutoffs)
        self.curve: list[float] = []
        self.num_iterations = 0
        self.was_stopped = False

    def on_iteration(self, progress: TrainingProgress) -> bool:
        """Take the validation score; whether to stop."""
        self.num_iterations = progress.num_iterations
        score = next((value for name, value in progress.metrics.items() if name.startswith("validation ")), None)
        if score is None:
            return False
        self.curve.append(float(score))
        cutoff = self.cutoffs.get(len(self.curve))
        self.was_stopped = cutoff is not None and max(self.curve) < cutoff
        return self.was_stopped
