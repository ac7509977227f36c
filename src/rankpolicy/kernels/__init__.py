"""Private fast paths. Each is tested against its readable reference; none is imported before it is used."""

from functools import cache
from importlib.util import find_spec


@cache
def has_numba() -> bool:
    """Whether compiled CPU kernels can serve; without numba the torch references do."""
    return find_spec("numba") is not None
