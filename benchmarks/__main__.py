"""``python -m benchmarks [--keep FILE]`` (``make bench``): every benchmark, one JSON line per ratio.

The exit status is 1 when a ratio is under its floor. ``--keep docs/results/speed.json`` keeps the ratios with date, versions and
machine, as the page of results shows them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.circumstances import circumstances

NOT_BENCHMARKS = {"__init__", "__main__", "circumstances", "files_under_stress", "timing"}


def main() -> int:
    """Each benchmark has a process of its own, so that none warms another's caches or threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, default=None, help="A JSON file for all ratios.")
    keep = parser.parse_args().keep
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in NOT_BENCHMARKS)
    results: list[dict[str, Any]] = []
    for name in names:
        lines = subprocess.check_output([sys.executable, "-m", f"benchmarks.{name}"], text=True).splitlines()
        for line in lines:
            print(line, flush=True)
            results.append({"benchmark": name, **json.loads(line)})
    if keep is not None:
        kept = {"ratios": results, **circumstances("scikit-learn", "ranx")}
        keep.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    slow = [result["name"] for result in results if result["ratio"] < result["floor"]]
    if slow:
        print(f"under their floor: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
