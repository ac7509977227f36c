"""Freed memory goes back to the system."""

import sys

import numpy as np
import pytest

from rankpolicy.heap import give_back_freed_memory


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_freed_memory_goes_back_to_the_system() -> None:
    pieces = [np.ones(10_000) for _ in range(2_000)]  # 160 MB
    kept = pieces[::20]  # between them the allocator keeps what is freed
    del pieces
    before = resident_bytes()

    give_back_freed_memory()

    assert before - resident_bytes() > 100_000_000
    assert len(kept) == 100
