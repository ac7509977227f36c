"""Compiled fast paths, private to the library. Each is tested against its readable reference; none is imported before it is used."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

HAS_NUMBA = (
    find_spec("numba") is not None
)  # where it is not installed, the torch and numpy references serve instead of kernels
HAS_TRITON = find_spec("triton") is not None


def on_gpu(array: Tensor) -> bool:
    """Whether the Triton kernels serve this array: it lies on a CUDA device, and triton is installed.

    They compute in float32; float64 arrays take the torch references.
    """
    return array.device.type == "cuda" and HAS_TRITON and array.element_size() <= 4
