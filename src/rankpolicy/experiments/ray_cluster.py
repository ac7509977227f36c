"""Tasks on a Ray cluster: many machines, or the cores of this one."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

Shared = TypeVar("Shared")
Task = TypeVar("Task")
Result = TypeVar("Result")

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def run_on_ray(
    function: Callable[[Shared, Task], Result],
    shared: Shared,
    tasks: Sequence[Task],
    *,
    address: str | None = None,
    num_cpus: int | None = None,
    retries: int = 3,
) -> Generator[tuple[int, Result], None, None]:
    """Yield the index of each task and the result of ``function(shared, task)``, in the order in which tasks finish.

    A task whose machine or process is lost runs again elsewhere; an error of the task itself ends all tasks. Tasks that are the same
    function of what they are given therefore have the same results on one core, on many machines, and with machines that fail.

    Without an address, Ray is started on this machine alone: it listens on the loopback address only, asks for a token (that of
    ``~/.ray``, which Ray makes at the first start) and has no dashboard. A cluster with an address runs whatever its users send it: let
    only those reach it who may do so.

    Parameters
    ----------
    function
        What is called for each task; it must be defined at the top level of a module that every machine has.
    shared
        The data that all tasks need; it is sent to each machine once.
    tasks
        The tasks; each takes one core.
    address
        Address of a running cluster, such as "10.0.0.5:6379", or "auto"; None starts Ray on this machine and stops it at the end. A
        Ray that this process is connected to already is used as it is.
    num_cpus
        How many cores the Ray that is started here may use; None: all.
    retries
        How often a task may be lost.
    """
    if "ray" not in sys.modules:  # Ray reads these when it is loaded
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = require("ray", "Running on a Ray cluster")
    is_ours = not ray.is_initialized()
    if is_ours:
        _connect(ray, address, num_cpus)
    waiting: dict[Any, int] = {}
    try:
        remote = ray.remote(num_cpus=1, max_retries=retries, runtime_env={"env_vars": _ONE_THREAD})(_run_task)
        work = ray.put((function, shared))
        waiting |= {remote.remote(work, task): number for number, task in enumerate(tasks)}
        while waiting:
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            number = waiting.pop(done)
            yield number, _result(ray, done)
    finally:
        # After an error or an interrupt nobody needs the tasks that are still running.
        for left in waiting:
            with suppress(Exception):  # of a cluster that is lost: the first error counts
                ray.cancel(left, force=True)
        if is_ours:
            ray.shutdown()


def _connect(ray: Any, address: str | None, num_cpus: int | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address is not None:
            _check_reachable(address)
            ray.init(address=address, **quiet)
            return
        ray.init(address="local", num_cpus=num_cpus, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
    except (OSError, ValueError, RuntimeError) as error:
        where = "on this machine" if address is None else f"at {address}"
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RankPolicyError(
            f"there is no Ray {where} ({first}). Check the address and the token, or leave it out."
        ) from None


def _check_reachable(address: str) -> None:
    """Ray itself waits for minutes where nothing listens, and then ends the process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        with socket.create_connection((host, int(port)), timeout=5):
            pass


def _run_task(work: tuple[Callable[[Any, Any], Any], Any], task: Any) -> Any:
    import torch

    torch.set_num_threads(1)
    function, shared = work
    return function(shared, task)


def _result(ray: Any, done: Any) -> Any:
    try:
        return ray.get(done)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, RankPolicyError):
            raise error.cause.with_traceback(None) from None  # the traceback of the other process does not help a user
        raise
    except (ray.exceptions.RayError, ConnectionError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RankPolicyError(
            f"the cluster lost a task for good ({first}). Check its machines, and run again."
        ) from None
