"""Tasks in processes of this machine, with one thread each."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from rankpolicy.declarations.arguments import whole_number
from rankpolicy.executors.executor import Executor, Result, Serial, Shared, Task, Value, kept, written
from rankpolicy.types import RankPolicyError


@final
class Processes(Executor):
    """Tasks in processes of this machine. A task whose process is lost runs again.

    A script that uses it must make its calls under ``if __name__ == "__main__":``, because every process imports the script.

    Parameters
    ----------
    jobs
        Number of processes; None: as many as there are cores. With 1 the tasks run in this process.
    retries
        How often in a row processes may be lost without any task being finished.
    """

    name = "processes"

    def __init__(self, jobs: int | None = None, *, retries: int = 2) -> None:
        super().__init__(jobs)
        self._retries = whole_number("retries", retries, at_least=0)
        self._pool: ProcessPoolExecutor | None = None
        self._folder: Path | None = None
        self._num_shared = 0

    def as_finished(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Generator[tuple[int, Result], None, None]:
        if min(self.jobs, len(tasks)) <= 1:
            yield from Serial().as_finished(function, tasks)
            return
        shared = self.share(function)
        pending = {number: written(task) for number, task in enumerate(tasks)}
        num_losses = 0
        try:
            while pending:
                try:
                    for number, result in self._finished(shared, pending):
                        del pending[number]
                        num_losses = 0
                        yield number, result
                except BrokenProcessPool:
                    num_losses += 1
                    self._end_workers()
                    if num_losses > self._retries:
                        raise RankPolicyError(
                            "a worker process ended early, again and again: memory may be short (lower jobs), or a script starts "
                            "processes when it is imported (put the call under if __name__ == '__main__':). executor='serial' needs "
                            "no processes."
                        ) from None
        except RankPolicyError as error:
            raise error.with_traceback(None) from None  # the traceback of the other process does not help a user
        finally:
            shared.remove()
            if pending:  # after an error or an interrupt nobody needs the tasks that are still running
                self._end_workers()

    def _finished(
        self, function: SharedFile[Callable[[Any], Any]], tasks: dict[int, bytes]
    ) -> Iterator[tuple[int, Any]]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker
            )
        numbers: dict[Future[bytes], int] = {}
        with _without_interrupts():
            for number, task in tasks.items():
                numbers[self._pool.submit(_run_task, function, task)] = number
        for future in as_completed(numbers):
            yield numbers[future], pickle.loads(future.result())

    def share(self, value: Value) -> SharedFile[Value]:
        content = written(value)
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="rankpolicy-"))  # only this user can enter it
            self._remove_folder = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._num_shared += 1
        path = self._folder / f"{self._num_shared}.pickle"
        path.write_bytes(content)
        return SharedFile(str(path))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        if self._folder is not None:
            self._remove_folder()
            self._folder = None

    def _end_workers(self) -> None:
        if self._pool is None:
            return
        for process in list((self._pool._processes or {}).values()):
            process.terminate()
        self._pool.shutdown(cancel_futures=True)
        self._pool = None


class SharedFile(Shared[Value]):
    """A value in a file that only processes of this user read."""

    def __init__(self, path: str) -> None:
        self._path = path

    def get(self) -> Value:
        value: Value = kept(self._path, Path(self._path).read_bytes, pickle.loads)
        return value

    def remove(self) -> None:
        """Delete the file."""
        Path(self._path).unlink(missing_ok=True)


def _start_worker() -> None:
    # LightGBM and numba read these when they are loaded, which happens later.
    os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A process whose parent was killed would wait for tasks forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run_task(function: SharedFile[Callable[[Any], Any]], task: bytes) -> bytes:
    # Written here: torch would send tensors of results as files that end with this process.
    return written(function.get()(pickle.loads(task)))


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that are started within never see Ctrl-C, which goes to all processes of a terminal: this one decides when to stop."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
