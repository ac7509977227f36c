"""Parallel runs: many tasks over the same data, in processes with one thread each."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from rankpolicy.types import RankPolicyError

Shared = TypeVar("Shared")
Task = TypeVar("Task")
Result = TypeVar("Result")


def num_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_jobs(jobs: int | None) -> int:
    """The number of processes that ``jobs`` stands for; None: as many as there are cores.

    Parameters
    ----------
    jobs
        What a user gave.
    """
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
        raise RankPolicyError(f"jobs must be a whole number, 1 or more; got {jobs!r}.")
    return jobs or num_cores()


def run_in_processes(
    function: Callable[[Shared, Task], Result], shared: Shared, tasks: Sequence[Task], *, jobs: int | None = None
) -> Generator[tuple[int, Result], None, None]:
    """Yield the index of each task and the result of ``function(shared, task)``, in the order in which tasks finish.

    The first error ends all tasks.

    Parameters
    ----------
    function
        What is called for each task; it must be defined at the top level of a module.
    shared
        The data that all tasks need; it is sent to each process once.
    tasks
        The tasks; each is sent to the process that runs it.
    jobs
        Number of processes; None: as many as there are cores. With 1, the tasks run in this process.
    """
    num_processes = min(check_jobs(jobs), len(tasks))
    if num_processes <= 1:
        for number, task in enumerate(tasks):
            with _one_thread():
                result = function(shared, task)
            yield number, result
        return
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        num_processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(function, shared),
    )
    numbers: dict[Future[Any], int] = {}
    try:
        numbers |= {pool.submit(_run_task, task): number for number, task in enumerate(tasks)}
        for future in as_completed(numbers):
            yield numbers[future], future.result()
    except RankPolicyError as error:
        raise error.with_traceback(None) from None  # the traceback of the other process does not help a user
    except BrokenProcessPool:
        raise RankPolicyError(
            "a worker process ended early: memory may be short (lower jobs), or a script starts processes when it is imported "
            "(put the call under if __name__ == '__main__':). jobs=1 needs no processes."
        ) from None
    finally:
        # After an error or an interrupt nobody needs the tasks that are still running.
        if not all(future.done() for future in numbers):
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
        pool.shutdown(cancel_futures=True)


_work: tuple[Callable[[Any, Any], Any], Any]


def _start_worker(function: Callable[[Any, Any], Any], shared: Any) -> None:
    global _work
    # LightGBM and numba read these when they are loaded, which happens later.
    os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process decides when to stop
    _work = (function, shared)


def _run_task(task: Any) -> Any:
    function, shared = _work
    return function(shared, task)


@contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
