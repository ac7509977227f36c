"""What `import rankpolicy` adds to `import torch, numpy`, in new processes: at most 150 ms."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

BUDGET_SECONDS = 0.150
_PROGRAM = (
    "import time, torch, numpy; start = time.perf_counter(); import rankpolicy; print(time.perf_counter() - start)"
)


def measure() -> dict[str, object]:
    seconds = [float(subprocess.check_output([sys.executable, "-c", _PROGRAM])) for _ in range(7)]
    added = statistics.median(seconds)
    return {
        "name": "import-time",
        "ratio": round(BUDGET_SECONDS / added, 2),
        "floor": 1,
        "what": "150 ms / what importing rankpolicy adds to torch and numpy",
    }


if __name__ == "__main__":
    print(json.dumps(measure()))
