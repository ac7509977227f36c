"""How kernels are compiled: numba's ``njit`` with the options they share, and types that ``mypy --strict`` accepts."""

import threading
from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any, Literal

import numba

from rankpolicy.kernels import unique_symbols  # noqa: F401  (before anything is compiled)
from rankpolicy.threads import this_thread, usable_cpus

# If numba was loaded before rankpolicy, it has not seen what rankpolicy.threads chose.
numba.config.reload_config()  # type: ignore[no-untyped-call]

_USABLE_CPUS = usable_cpus()
# Waking a thread takes up to 0.1 ms where the cores are busy.
_ENOUGH_NANOSECONDS = 200_000


def njit(
    *,
    parallel: bool = False,
    fastmath: bool | set[str] = False,
    nogil: bool = False,
    error_model: Literal["numpy", "python"] = "numpy",
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator that compiles a function on its first call and caches the result beside its source.

    A compiled function takes any arguments that numba can compile it for, so its static type is ``Any``: what calls it from Python is
    an ordinary function with annotations.

    Results that travel in a NamedTuple must be written by a function that the body of a ``prange`` loop calls, not by the body itself:
    there numba does not see that a field of the tuple is used later, and drops the assignment.
    """
    options: dict[str, Any] = {"cache": True, "fastmath": fastmath, "nogil": nogil, "error_model": error_model}
    if parallel:
        return lambda function: ParallelKernel(function, options)
    compiled: Callable[[Callable[..., Any]], Any] = numba.njit(**options)
    return compiled


class ParallelKernel:
    """A function with a ``prange`` loop, compiled twice: for all threads, and for one.

    One thread runs it where the work is too little to wake others, where its Python thread must not start any
    (``rankpolicy.threads.this_thread``), and while another Python thread is running a parallel kernel: numba's own threads, its layer
    "workqueue", end the process when two Python threads call them at once.
    """

    # Shared by all kernels, as numba's threads are.
    _threads_in_use = threading.Lock()

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        assert isinstance(function, FunctionType)
        self.function = function
        self.options = options

    @cached_property
    def on_all_threads(self) -> Callable[..., Any]:
        """The function compiled for all threads."""
        compiled: Callable[..., Any] = numba.njit(parallel=True, **self.options)(self.function)
        return compiled

    @cached_property
    def on_one_thread(self) -> Callable[..., Any]:
        """The function compiled for one thread."""
        function = self.function
        single = FunctionType(function.__code__, function.__globals__, function.__name__)
        # numba keeps compiled code by name, whatever the options.
        single.__qualname__, single.__module__ = f"{function.__qualname__}_on_one_thread", function.__module__
        compiled: Callable[..., Any] = numba.njit(**self.options)(single)
        return compiled

    def __call__(self, *arguments: Any, num_tasks: int, nanoseconds: float) -> Any:
        """Run the kernel."""
        if num_tasks < 2 or nanoseconds < _ENOUGH_NANOSECONDS or this_thread.is_alone:
            return self.on_one_thread(*arguments)
        allowed = numba.get_num_threads()
        num_threads = min(allowed, _USABLE_CPUS)
        if num_threads < 2 or not self._threads_in_use.acquire(blocking=False):
            return self.on_one_thread(*arguments)
        try:
            numba.set_num_threads(num_threads)
            return self.on_all_threads(*arguments)
        finally:
            numba.set_num_threads(allowed)
            self._threads_in_use.release()
