"""What `import rankpolicy` adds to `import numpy`, at most 0.1 s, and the CPU time of `rankpolicy --help`, at most 0.4 s."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator

IMPORT_SECONDS = 0.1
HELP_SECONDS = 0.4
REPEATS = 7
_IMPORT = "import time, numpy; start = time.perf_counter(); import rankpolicy; print(time.perf_counter() - start)"
_HELP = "import sys; sys.argv = ['rankpolicy', '--help']; from rankpolicy.cli.main import main; main()"


def measure() -> Iterator[dict[str, object]]:
    imported = statistics.median(
        float(subprocess.check_output([sys.executable, "-c", _IMPORT])) for _ in range(REPEATS)
    )
    yield {
        "name": "import-time",
        "ratio": round(IMPORT_SECONDS / imported, 2),
        "floor": 1,
        "what": "0.1 s / what importing rankpolicy adds to numpy",
    }
    helped = statistics.median(_cpu_seconds(_HELP) for _ in range(REPEATS))
    yield {
        "name": "help-time",
        "ratio": round(HELP_SECONDS / helped, 2),
        "floor": 1,
        "what": "0.4 s / CPU time of rankpolicy --help",
    }


def _cpu_seconds(program: str) -> float:
    """User and system time of a new Python process."""
    before = os.times()
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


if __name__ == "__main__":
    for result in measure():
        print(json.dumps(result))
