"""Memory that was freed, given back to the system.

The allocator keeps what a compiled library frees for later use. After trees were grown that is more than the data itself, and the next
fit, in another thread, does not find it.
"""

from __future__ import annotations

import ctypes
import sys


def give_back_freed_memory() -> None:
    """Give the pages of freed memory back to the system; nothing is done where the C library is not GNU's."""
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
