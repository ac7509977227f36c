"""Tasks in this process: one after the other, or in threads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, final

from rankpolicy.executors.executor import Executor, Result, Task
from rankpolicy.interruption import interruption_left_to_caller
from rankpolicy.threads import one_thread_each


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
