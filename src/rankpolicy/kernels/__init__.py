"""Compiled fast paths, private to the library. Each is tested against its readable reference; none is imported before it is used."""

from importlib.util import find_spec

HAS_NUMBA = (
    find_spec("numba") is not None
)  # where it is not installed, the torch and numpy references serve instead of kernels
