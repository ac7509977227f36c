"""The face of all executors, the shared values that a worker keeps between tasks, and tasks in this process or its threads."""

from __future__ import annotations

import pickle
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar, final

from rankpolicy.declarations.arguments import whole_number
from rankpolicy.interruption import interruption_left_to_caller
from rankpolicy.threads import one_thread_each, usable_cpus
from rankpolicy.types import RankPolicyError

Task = TypeVar("Task")
Result = TypeVar("Result")
Value = TypeVar("Value")


class Executor(ABC):
    """Runs a function on many tasks and returns the results in the order of the tasks.

    A task gets everything it needs as its argument, its seed included, so results do not depend on the executor, on the number of
    workers, or on workers that were lost. Workers start at the first call and stay until ``close``; ``with`` closes an executor.

    Parameters
    ----------
    jobs
        Most tasks at the same time; None: as many as there are cores.
    """

    name: ClassVar[str]

    def __init__(self, jobs: int | None = None) -> None:
        self._jobs = None if jobs is None else whole_number("jobs", jobs, at_least=1)

    @property
    def jobs(self) -> int:
        """Most tasks at the same time."""
        return self._jobs or usable_cpus()

    def map(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        *,
        report: Callable[[int, Result], None] | None = None,
    ) -> list[Result]:
        """``[function(task) for task in tasks]``, several at a time.

        An error of a task, of ``report``, or Ctrl-C ends all tasks that are still running.

        Parameters
        ----------
        function
            What is called with each task: a function at the top level of a module, or a ``functools.partial`` of one with the data that all
            tasks need. Each worker receives it once.
        tasks
            The tasks; each is sent to the worker that runs it.
        report
            Called in this process with the number and the result of each task when it has finished, for progress.
        """
        tasks = tasks if isinstance(tasks, Sequence) else list(tasks)
        results_by_number: dict[int, Result] = {}
        with closing(self.as_finished(function, tasks)) as results:
            for number, result in results:
                results_by_number[number] = result
                if report is not None:
                    report(number, result)
        return [results_by_number[number] for number in range(len(tasks))]

    @abstractmethod
    def as_finished(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Generator[tuple[int, Result], None, None]:
        """Yield the number and the result of each task in the order in which tasks finish; closing the generator ends the others.

        Parameters
        ----------
        function
            What is called with each task, as for ``map``.
        tasks
            The tasks.
        """

    def share(self, value: Value) -> Shared[Value]:
        """A handle of a value that several tasks of one or several calls read; each worker that reads it receives it once.

        Parameters
        ----------
        value
            The value; tasks must not change it.
        """
        return InPlace(value)

    def close(self) -> None:  # noqa: B027 (most executors have nothing to close)
        """End the workers and forget shared values. A closed executor starts new workers when it is used again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(jobs={self.jobs})"


class Shared(ABC, Generic[Value]):
    """A handle of a value that tasks read with ``get``."""

    @abstractmethod
    def get(self) -> Value:
        """The value."""


class InPlace(Shared[Value]):
    """A value of this process."""

    def __init__(self, value: Value) -> None:
        self._value = value

    def get(self) -> Value:
        return self._value


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its kind where it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def written(value: Any) -> bytes:
    """A function, task or result as it travels between processes of one user."""
    with named_if_it_cannot_travel(value):
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


@contextmanager
def named_if_it_cannot_travel(value: Any) -> Iterator[None]:
    """An error in words for what pickle cannot write."""
    try:
        yield
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise RankPolicyError(
            "what runs in other processes must be a function at the top level of a module, and tasks and results must be values that "
            f"pickle can write; {value!r:.80} cannot travel ({first_line(error)}). executor='serial' needs no travel."
        ) from None


_MOST_BYTES = 1 << 30
_LEAST_VALUES = 2  # a function, and what its tasks read
_kept: dict[str, tuple[int, Any]] = {}  # size and value by key, the one used last at the end


def kept(key: str, load: Callable[[], Any], unpack: Callable[[Any], Any]) -> Any:
    """The value with this key, loaded and unpacked unless it is still there. The ones used longest ago go first."""
    if key in _kept:
        _kept[key] = _kept.pop(key)
        return _kept[key][1]
    packed = load()
    size = len(packed[0]) if isinstance(packed, tuple) else len(packed)
    _kept[key] = size, unpack(packed)
    while len(_kept) > _LEAST_VALUES and sum(num_bytes for num_bytes, _ in _kept.values()) > _MOST_BYTES:
        del _kept[next(iter(_kept))]
    return _kept[key][1]


@final
class Serial(Executor):
    """One task after the other, in this process. Kernels may use all cores; torch uses one, as in workers, so results are the same."""

    name = "serial"

    def __init__(self) -> None:
        super().__init__(1)

    def as_finished(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Generator[tuple[int, Result], None, None]:
        for number, task in enumerate(tasks):
            with _one_torch_thread(), interruption_left_to_caller():
                result = function(task)
            yield number, result

    def __repr__(self) -> str:
        return "Serial()"


@final
class Threads(Executor):
    """Tasks in threads of this process: for compiled functions, which run side by side; Python code would wait for each other.

    Parameters
    ----------
    jobs
        Number of threads; None: as many as there are cores.
    """

    name = "threads"

    def as_finished(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Generator[tuple[int, Result], None, None]:
        num_threads = min(self.jobs, len(tasks))
        if num_threads <= 1:
            yield from Serial().as_finished(function, tasks)
            return
        with ThreadPoolExecutor(num_threads) as pool:
            numbers: dict[Future[Any], int] = {
                pool.submit(_alone, function, task): number for number, task in enumerate(tasks)
            }
            try:
                for future in as_completed(numbers):
                    yield numbers[future], future.result()
            finally:
                pool.shutdown(cancel_futures=True)


def _alone(function: Callable[[Task], Result], task: Task) -> Result:
    with one_thread_each():
        return function(task)


@contextmanager
def _one_torch_thread() -> Iterator[None]:
    torch = sys.modules.get("torch")
    if torch is None:  # the tasks do not use it: what trains has loaded it
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
