"""`make bench`: every benchmark, a JSON line a ratio; exit status 1 when a ratio is under its floor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

NOT_BENCHMARKS = {"__init__", "__main__", "files_under_stress", "gpu", "timing"}


def main() -> int:
    """Each benchmark has a process of its own, so that none warms another's caches or threads."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in NOT_BENCHMARKS)
    slow = []
    for name in names:
        lines = subprocess.check_output([sys.executable, "-m", f"benchmarks.{name}"], text=True).splitlines()
        for line in lines:
            print(line, flush=True)
            result = json.loads(line)
            if result["ratio"] < result["floor"]:
                slow.append(result["name"])
    if slow:
        print(f"under their floor: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
