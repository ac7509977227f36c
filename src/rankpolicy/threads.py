"""How many threads the compiled libraries use, and how their threads wait for work.

OpenMP threads wait in a busy loop by default. Where other programs need the cores, or a container may use less CPU time than it has cores,
that loop takes the time from the thread it waits for: training became up to 16 times dearer. Threads that sleep at once are slow to wake
between the many short steps of a training epoch. ``prepare_threads`` therefore asks OpenMP for threads that loop for about a tenth of a
millisecond and then sleep, numba for OpenMP's threads, and both for no more threads than the container may run at once.
"""

from __future__ import annotations

import importlib
import math
import os
import sys
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# A user who sets one of these has chosen how OpenMP threads wait.
_WAITING_POLICIES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
# Turns of the waiting loop of GNU's OpenMP, which goes by this number rather than by OMP_WAIT_POLICY.
_SPINS_BEFORE_SLEEP = "3000"
_NUMBA_LAYERS = ("NUMBA_THREADING_LAYER", "NUMBA_THREADING_LAYER_PRIORITY")


def prepare_threads(environment: MutableMapping[str, str] = os.environ) -> None:
    """Choose waiting policy, threading layer and number of threads, by environment variables that are not set yet.

    Libraries read these variables when they are loaded, so ``import rankpolicy`` calls this before it loads any. A torch that is loaded
    already is told the number of threads directly.
    """
    if not any(name in environment for name in _WAITING_POLICIES):
        environment["OMP_WAIT_POLICY"] = "PASSIVE"
        environment["GOMP_SPINCOUNT"] = _SPINS_BEFORE_SLEEP
    if not any(name in environment for name in _NUMBA_LAYERS):
        environment["NUMBA_THREADING_LAYER_PRIORITY"] = "tbb omp workqueue"
    num_threads = usable_cpus()
    if num_threads >= affinity_cpus():
        return
    if "OMP_NUM_THREADS" not in environment:
        environment["OMP_NUM_THREADS"] = str(num_threads)
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_num_threads(min(num_threads, torch.get_num_threads()))
    # A numba that runs already refuses another number; kernels/compile.py then runs on fewer of its threads.
    if "NUMBA_NUM_THREADS" not in environment and "numba" not in sys.modules:
        environment["NUMBA_NUM_THREADS"] = str(num_threads)


class _ThisThread(threading.local):
    """``is_alone``: whether this Python thread must not start others: within ``one_thread_each``, and in a forked process."""

    is_alone = False


this_thread = _ThisThread()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Within it torch, kernels and LightGBM start no threads for this Python thread, so that several such threads run side by side."""
    torch: Any = importlib.import_module("torch") if find_spec("torch") else None
    num_threads, was_alone = 1 if torch is None else torch.get_num_threads(), this_thread.is_alone
    this_thread.is_alone = True
    try:
        if torch is not None:
            torch.set_num_threads(1)
        yield
    finally:
        if torch is not None:
            torch.set_num_threads(num_threads)
        this_thread.is_alone = was_alone


def _stay_alone_after_fork() -> None:
    """Use one thread per library from now on: called in a forked process.

    A fork copies one thread only. The pools of OpenMP, which LightGBM, torch and numba's kernels share, still count the threads of the
    parent there: LightGBM and torch wait for them for ever, numba ends the process. One thread needs no pool.
    """
    _ThisThread.is_alone = this_thread.is_alone = True  # kernels and the parameters of LightGBM go by it
    torch, lightgbm = sys.modules.get("torch"), sys.modules.get("lightgbm")
    if torch is not None and hasattr(torch, "set_num_threads"):  # not while it is being imported
        torch.set_num_threads(1)
    if lightgbm is not None and hasattr(lightgbm, "basic"):
        lightgbm.basic._LIB.LGBM_SetMaxThreads(1)  # reading a model takes no parameter for it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stay_alone_after_fork)


def usable_cpus() -> int:
    """How many threads can run at once: the cores this process may use, or the CPU quota of its container where that is lower."""
    quota = cpu_quota()
    return affinity_cpus() if quota is None else max(1, min(affinity_cpus(), math.ceil(quota)))


def affinity_cpus() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_quota(root: Path = Path("/")) -> float | None:
    """CPU time per time that the control groups of this process allow, such as 1.5; None without a limit.

    Reads version 2 (``cpu.max``) and version 1 (``cpu.cfs_quota_us``) of control groups; a limit on a parent holds for its children.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    quotas = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for folder in _folders(root / "sys/fs/cgroup", controllers, path):
            quota = _quota_of_version_1(folder) if controllers else _quota_of_version_2(folder)
            if quota is not None:
                quotas.append(quota)
    return min(quotas, default=None)


def _folders(mount: Path, controllers: str, path: str) -> Iterator[Path]:
    """The folders of a control group and of its parents; inside a container its own path may be that of the host, which is not there."""
    if controllers and "cpu" not in controllers.split(","):
        return
    for name in (controllers, "cpu") if controllers else ("", "unified"):
        names = [level for level in path.split("/") if level]
        for depth in range(len(names), -1, -1):
            yield (mount / name).joinpath(*names[:depth])


def _quota_of_version_2(folder: Path) -> float | None:
    try:
        allowed, period = (folder / "cpu.max").read_text().split()
        return None if allowed == "max" else int(allowed) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _quota_of_version_1(folder: Path) -> float | None:
    try:
        allowed = int((folder / "cpu.cfs_quota_us").read_text())
        return None if allowed <= 0 else allowed / int((folder / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError, ZeroDivisionError):
        return None
