"""Memory that is not needed any more goes back to the system."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rankpolicy.heap import give_back_code, give_back_freed_memory

CODE = """
import numba
from rankpolicy.heap import give_back_code
numba.njit(lambda x: x + 1)(1)
give_back_code("libllvmlite")
print(numba.njit(lambda x: x + 2)(1))
"""


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


def resident_code(library: str) -> int:
    """Kilobytes of a library's code in memory."""
    mappings = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(encoding="utf-8"), flags=re.M)
    chosen = [text for text in mappings if library in text.partition("\n")[0] and " r-xp " in text]
    return sum(int(re.search(r"^Rss:\s+(\d+)", text, re.M)[1]) for text in chosen)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_code_of_a_library_leaves_memory():
    import numba

    numba.njit(lambda x: x + 1)(1)
    before = resident_code("libllvmlite")
    give_back_code("libllvmlite")
    assert resident_code("libllvmlite") < before / 2


def test_code_that_was_given_back_still_runs():
    assert subprocess.check_output([sys.executable, "-c", CODE], text=True) == "3\n"
