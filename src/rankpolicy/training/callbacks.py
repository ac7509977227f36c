"""Callbacks: what a user's code learns of training while it goes on, and how it can stop it.

Callbacks that write training curves to TensorBoard, MLflow or Weights & Biases; each package is imported when training starts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from rankpolicy.display import short_repr
from rankpolicy.optional import require
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


@final
class TensorBoard(Callback):
    """Write the numbers of every iteration as TensorBoard scalars.

    Parameters
    ----------
    log_dir
        Directory of the event files; a subdirectory for each run keeps their curves apart.
    """

    def __init__(self, log_dir: str | Path = "runs") -> None:
        self.log_dir = log_dir
        self._writer: Any = None

    def on_start(self, progress: TrainingProgress) -> None:
        """Open the event file.

        Parameters
        ----------
        progress
            The state before the first iteration.
        """
        require("tensorboard", "The TensorBoard callback")
        module = require("torch.utils.tensorboard", "The TensorBoard callback")
        self._writer = module.SummaryWriter(str(self.log_dir))

    def on_iteration(self, progress: TrainingProgress) -> None:
        """Write the numbers.

        Parameters
        ----------
        progress
            The state after the iteration.
        """
        for name, value in progress.metrics.items():
            self._writer.add_scalar(plain_name(name), value, progress.iteration)

    def on_end(self, progress: TrainingProgress) -> None:
        """Close the event file.

        Parameters
        ----------
        progress
            The last state.
        """
        if self._writer is not None:
            self._writer.close()


@final
class MLflow(Callback):
    """Log the settings and the numbers of every iteration to MLflow: to the active run, or to a new one.

    Parameters
    ----------
    run_name
        Name of the run, where a new one is started; None: MLflow makes one up.
    """

    def __init__(self, run_name: str | None = None) -> None:
        self.run_name = run_name
        self._mlflow: Any = None
        self._owns_run = False

    def on_start(self, progress: TrainingProgress) -> None:
        """Start a run unless one is active, and log the settings.

        Parameters
        ----------
        progress
            The state before the first iteration.
        """
        self._mlflow = require("mlflow", "The MLflow callback")
        self._owns_run = self._mlflow.active_run() is None
        if self._owns_run:
            self._mlflow.start_run(run_name=self.run_name)
        self._mlflow.log_params({"ranker": progress.ranker, **progress.settings})

    def on_iteration(self, progress: TrainingProgress) -> None:
        """Log the numbers.

        Parameters
        ----------
        progress
            The state after the iteration.
        """
        self._mlflow.log_metrics(
            {plain_name(name): value for name, value in progress.metrics.items()}, step=progress.iteration
        )

    def on_end(self, progress: TrainingProgress) -> None:
        """End the run, if this callback started it.

        Parameters
        ----------
        progress
            The last state.
        """
        if self._mlflow is not None and self._owns_run:
            self._mlflow.end_run()


@final
class WeightsAndBiases(Callback):
    """Log the settings and the numbers of every iteration to Weights & Biases: to the active run, or to a new one.

    Parameters
    ----------
    project
        Project of the run, where a new one is started; None: the default project.
    name
        Name of that run; None: one is made up.
    """

    def __init__(self, project: str | None = None, *, name: str | None = None) -> None:
        self.project = project
        self.name = name
        self._run: Any = None
        self._owns_run = False

    def on_start(self, progress: TrainingProgress) -> None:
        """Start a run unless one is active, and log the settings.

        Parameters
        ----------
        progress
            The state before the first iteration.
        """
        wandb = require("wandb", "The WeightsAndBiases callback")
        self._owns_run = wandb.run is None
        self._run = wandb.init(project=self.project, name=self.name) if self._owns_run else wandb.run
        self._run.config.update({"ranker": progress.ranker, **progress.settings}, allow_val_change=True)

    def on_iteration(self, progress: TrainingProgress) -> None:
        """Log the numbers.

        Parameters
        ----------
        progress
            The state after the iteration.
        """
        self._run.log(dict(progress.metrics), step=progress.iteration)

    def on_end(self, progress: TrainingProgress) -> None:
        """Finish the run, if this callback started it.

        Parameters
        ----------
        progress
            The last state.
        """
        if self._run is not None and self._owns_run:
            self._run.finish()


def plain_name(name: str) -> str:
    """The name of a number as TensorBoard and MLflow take it.

    >>> plain_name("validation ndcg@10")
    'validation_ndcg_10'
    """
    return re.sub(r"[^\w./-]+", "_", name)
