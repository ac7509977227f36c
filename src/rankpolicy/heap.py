"""Memory that is not needed any more, given back to the system.

The allocator keeps what a compiled library frees for later use. After trees were grown that is more than the data itself, and the next
fit, in another thread, does not find it.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

_MADV_DONTNEED = 4  # of Linux


def give_back_freed_memory() -> None:
    """Give the pages of freed memory back to the system; nothing is done where the C library is not GNU's."""
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def give_back_code(library: str) -> None:
    """Give back the pages of a shared library's code; whatever runs again is read again from its file. Linux only.

    Loading compiled functions runs through some 50 MB of LLVM, and nothing needs them afterwards.
    """
    if sys.platform != "linux":
        return
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8") as maps:  # it is hidden in some containers
        for line in maps:
            span, permissions, *_, path = line.split(maxsplit=5)
            # Not the other pages of the library: they hold addresses that were written when it was loaded.
            if permissions == "r-xp" and library in path:
                start, end = (int(address, 16) for address in span.split("-"))
                madvise(start, end - start, _MADV_DONTNEED)
