"""Executors: many independent tasks in this process, in threads, in processes or on a Ray cluster, with the same results."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.executors.chosen import EXECUTORS, make_executor, opened
    from rankpolicy.executors.executor import Executor, Shared
    from rankpolicy.executors.local_processes import Processes
    from rankpolicy.executors.ray_cluster import Ray
    from rankpolicy.executors.same_process import Serial, Threads

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "EXECUTORS",
    "Executor",
    "Processes",
    "Ray",
    "Serial",
    "Shared",
    "Threads",
    "make_executor",
    "opened",
]
