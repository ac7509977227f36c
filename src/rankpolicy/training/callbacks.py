"""Callbacks: what a user's code learns of training while it goes on, and how it can stop it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankpolicy.display import short_repr
from rankpolicy.types import RankPolicyError


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProgress:
    """The state of training after an iteration (an epoch of a network, a tree, a pass of a linear ranker).

    Parameters
    ----------
    ranker
        Class name of the ranker, such as "PGRank".
    iteration
        How many iterations are done.
    num_iterations
        How many there are at most.
    metrics
        The latest numbers by name: what the objective reports on the training data, and "validation ndcg@10" with validation data.
    settings
        The settings of the ranker by name, as JSON can hold them.
    """

    ranker: str
    iteration: int
    num_iterations: int
    metrics: Mapping[str, float]
    settings: Mapping[str, Any]

    __repr__ = short_repr


class Callback:
    """A callback with a beginning and an end; overwrite what is needed. A plain function of a TrainingProgress is a callback too.

    >>> class StopAt(Callback):
    ...     def __init__(self, iteration):
    ...         self.iteration = iteration
    ...
    ...     def on_iteration(self, progress):
    ...         return progress.iteration >= self.iteration
    """

    def on_start(self, progress: TrainingProgress) -> None:
        """Called before the first iteration.

        Parameters
        ----------
        progress
            The state with 0 iterations and no metrics.
        """

    def on_iteration(self, progress: TrainingProgress) -> bool | None:
        """Called after every iteration; return True to stop training.

        Parameters
        ----------
        progress
            The state after the iteration.
        """
        return None

    def is_over(self) -> bool:
        """Asked after every step of a network: True ends the epoch there, and it counts as done. Training ends if on_iteration says so."""
        return False

    def on_end(self, progress: TrainingProgress) -> None:
        """Called after the last iteration, also when training fails or is interrupted.

        Parameters
        ----------
        progress
            The last state.
        """


class _FunctionCallback(Callback):
    def __init__(self, function: Callable[[TrainingProgress], Any]) -> None:
        self.function = function

    def on_iteration(self, progress: TrainingProgress) -> bool | None:
        return self.function(progress) is True


def as_callbacks(given: Any) -> tuple[Callback, ...]:
    """The callbacks that a user gave to ``fit``: a list of ``Callback`` objects and functions; None has none."""
    if given is None:
        return ()
    if isinstance(given, Callback) or not isinstance(given, Sequence):
        raise RankPolicyError(
            f"callbacks must be a list of functions or Callback objects; got {given!r:.60}. Write [...]."
        )
    callbacks = []
    for each in given:
        if isinstance(each, type) and issubclass(each, Callback):
            raise RankPolicyError(
                f"callbacks must hold objects; got the class {each.__name__}. Write {each.__name__}()."
            )
        if not isinstance(each, Callback) and not callable(each):
            raise RankPolicyError(f"callbacks must be functions or Callback objects; got {each!r:.60}.")
        callbacks.append(each if isinstance(each, Callback) else _FunctionCallback(each))
    return tuple(callbacks)
