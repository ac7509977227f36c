"""Which executor runs: a name, a number of jobs and an address, or an executor that the user made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.executors.executor import Executor, Serial, Threads
from rankpolicy.executors.local_processes import Processes
from rankpolicy.executors.ray_cluster import Ray
from rankpolicy.types import RankPolicyError, check_name

EXECUTORS: dict[str, type[Executor]] = {executor.name: executor for executor in (Serial, Threads, Processes, Ray)}


@checked_kinds
def make_executor(name: str, *, jobs: int | None = None, address: str | None = None) -> Executor:
    """The executor of this name.

    Parameters
    ----------
    name
        "serial", "threads", "processes" or "ray".
    jobs
        Most tasks at the same time; None: as many as there are cores.
    address
        Address of a Ray cluster, such as "10.0.0.5:6379"; None starts Ray on this machine.

    >>> make_executor("processes", jobs=2)
    Processes(jobs=2)
    """
    check_name("executor", name, EXECUTORS)
    if address is not None and name != Ray.name:
        raise RankPolicyError(f"an address is that of a Ray cluster: it needs executor='ray'; got {name!r}.")
    if name == Ray.name:
        return Ray(jobs, address=address)
    if name == Serial.name:
        if jobs not in (None, 1):
            raise RankPolicyError(
                f"executor='serial' runs one task at a time; got jobs={jobs}. Leave it out, or take 'processes'."
            )
        return Serial()
    return EXECUTORS[name](jobs)


@contextmanager
def opened(executor: Executor | str | None, *, default: str = Serial.name) -> Iterator[Executor]:
    """The executor that a user chose; one that is made here is closed at the end, one that was given stays open.

    Parameters
    ----------
    executor
        An executor, the name of one, or None for the default.
    default
        Name of the executor for None.
    """
    if isinstance(executor, Executor):
        yield executor
        return
    with make_executor(default if executor is None else executor) as new_executor:
        yield new_executor
