"""Executors: many independent tasks in this process, in threads, in processes or on a Ray cluster, with the same results."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.executors.chosen import EXECUTORS as EXECUTORS, make_executor as make_executor, opened as opened
    from rankpolicy.executors.executor import (
        Executor as Executor,
        Serial as Serial,
        Shared as Shared,
        Threads as Threads,
    )
    from rankpolicy.executors.local_processes import Processes as Processes
    from rankpolicy.executors.ray_cluster import Ray as Ray

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
