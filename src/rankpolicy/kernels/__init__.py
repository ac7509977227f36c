"""Compiled fast paths, private to the library. Each is tested against its readable reference; none is imported before it is used."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

# Where numba is not installed, the torch and numpy references serve instead of kernels.
HAS_NUMBA = find_spec("numba") is not None
HAS_TRITON = find_spec("triton") is not None
TRITON_SWITCH = "RANKPOLICY_TRITON"


def triton_is_on() -> bool:
    """Whether Triton kernels may serve: triton is installed, and RANKPOLICY_TRITON=0 does not turn them off."""
    return HAS_TRITON and os.environ.get(TRITON_SWITCH) != "0"


def can_read(array: Any) -> bool:
    """Whether the host may look at the values of an array: not while a CUDA graph is captured, which then leaves out checks of values."""
    if not getattr(array, "is_cuda", False):
        return True
    from torch.cuda import is_current_stream_capturing

    return not is_current_stream_capturing()


def on_gpu(array: Any) -> bool:
    """Whether the Triton kernels serve this array: it lies on a CUDA device, and they are on.

    They compute in float32; float64 arrays take the torch references.
    """
    return getattr(array, "is_cuda", False) and array.element_size() <= 4 and triton_is_on()
