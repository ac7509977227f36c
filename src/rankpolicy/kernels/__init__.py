"""Compiled fast paths, private to the library. Each is tested against its readable reference; none is imported before it is used."""

from functools import cache
from importlib.util import find_spec


@cache
def has_numba() -> bool:
    """Whether numba is installed; where it is not, the torch references serve instead of compiled kernels."""
    return find_spec("numba") is not None
