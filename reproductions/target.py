"""A target of ``rankpolicy reproduce``: a table or figure of a paper that can be run again, with the statements it checks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rankpolicy.executors import Executor, Processes, opened
from rankpolicy.types import RankPolicyError
from reproductions.statements import Claim, Statement

Task = TypeVar("Task")
Result = TypeVar("Result")
Row = dict[str, Any]  # plain values by column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """The result of a run.

    Parameters
    ----------
    rows
        The rows of the table, plain values by column.
    claims
        The claims of the paper, checked.
    figures
        Matplotlib figures by file name.
    """

    rows: tuple[Row, ...]
    claims: tuple[Claim, ...]
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setup:
    """How a target runs.

    Parameters
    ----------
    data
        The folder of the datasets, which ``--data`` or RANKPOLICY_DATA names; None where none was given.
    seed
        Seed of everything random.
    is_smoke
        Run the same code on little data, to see that it works; the numbers mean nothing.
    device
        The device that trains networks: "cpu" or "cuda".
    executor
        Where tasks run: an executor, the name of one, or None for processes, one per core, and for this process in a smoke run.
    report
        Called with a line about every step of the run.
    """

    data: Path | None = None
    seed: int = 0
    is_smoke: bool = False
    device: str = "cpu"
    executor: Executor | str | None = None
    report: Callable[[str], None] = print

    def as_finished(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], *, jobs_on_gpu: int | None = None
    ) -> Generator[tuple[int, Result], None, None]:
        """Yield the number and the result of each task in the order in which tasks finish.

        Parameters
        ----------
        function
            What is called with each task, a ``partial`` with the data that all tasks need.
        tasks
            The tasks.
        jobs_on_gpu
            How many tasks share a GPU where networks are trained on one, unless the user chose an executor.
        """
        shares_gpu = self.executor is None and not self.is_smoke and self.device.startswith("cuda")
        if shares_gpu and jobs_on_gpu is not None:
            context: AbstractContextManager[Executor] = Processes(jobs_on_gpu)
        else:
            context = opened(self.executor, default="serial" if self.is_smoke else "processes")
        with context as executor:
            yield from executor.as_finished(function, tasks)

    def folder(self, name: str) -> Path:
        """The folder of a dataset.

        Parameters
        ----------
        name
            Its name in the folder of the datasets.

        >>> Setup().folder("letor_mq2007")
        Traceback (most recent call last):
        rankpolicy.types.RankPolicyError: this target reads letor_mq2007: say where with --data DIR, the folder that holds it, ...
        """
        if self.data is None:
            raise RankPolicyError(
                f"this target reads {name}: say where with --data DIR, the folder that holds it, or with RANKPOLICY_DATA."
            )
        folder = self.data / name
        if not folder.is_dir():
            raise RankPolicyError(f"this target reads {name}; {self.data} has no such folder.")
        return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A table or figure of a paper.

    Parameters
    ----------
    name
        Its name on the command line, ``paper/table``.
    what
        What it shows, in a line.
    run
        The function that runs it.
    datasets
        Names of the datasets that it reads.
    statements
        What the paper says about this table or figure and what we ask of it, each with the claims that measure it.
    untested
        Statements of the paper about this table or figure that cannot be tested here, each with the reason.
    """

    name: str
    what: str
    run: Callable[[Setup], Outcome]
    datasets: tuple[str, ...] = ()
    statements: tuple[Statement, ...] = ()
    untested: tuple[tuple[str, str], ...] = ()
