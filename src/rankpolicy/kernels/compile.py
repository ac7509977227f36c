"""How kernels are compiled: numba's ``njit`` with the options they share, and types that ``mypy --strict`` accepts."""

from collections.abc import Callable
from typing import Any, Literal

import numba


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

    Parameters
    ----------
    parallel
        Whether ``prange`` loops run on all threads.
    fastmath
        Liberties with floating-point arithmetic, by their LLVM names: ``{"reassoc", "contract"}``. By default none.
    nogil
        Whether other Python threads may run meanwhile.
    error_model
        ``"numpy"``: division by zero gives inf or NaN. ``"python"``: it raises, at the cost of a test per division.
    """
    compiled: Callable[[Callable[..., Any]], Any] = numba.njit(
        cache=True, parallel=parallel, fastmath=fastmath, nogil=nogil, error_model=error_model
    )
    return compiled
