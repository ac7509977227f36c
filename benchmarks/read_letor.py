"""Reading LETOR text, item ids included, against scikit-learn's reader, which leaves them out."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.timing import speedup, use_two_threads
from rankpolicy.data import make_web_search, read_letor, write_letor

PARTS = ("S1", "S2", "S3", "S4", "S5")


def write_text(path: Path) -> None:
    """All of MQ2007 as one text, or as much made-up text where the data are not at hand."""
    folder = Path(os.environ.get("RANKPOLICY_DATA", "")) / "letor_mq2007"
    if folder.is_dir():
        path.write_bytes(b"".join(gzip.decompress((folder / f"{part}.txt.gz").read_bytes()) for part in PARTS))
    else:
        write_letor(make_web_search(1692, items_per_query=(6, 76), num_features=46), path)


def measure() -> dict[str, Any]:
    from sklearn.datasets import load_svmlight_file

    use_two_threads()
    with TemporaryDirectory() as folder:
        path = Path(folder, "all.txt")
        write_text(path)
        ratio = speedup(lambda: load_svmlight_file(str(path), query_id=True), lambda: read_letor(path), repeats=5)
    return {
        "name": "read-letor-mq2007",
        "ratio": round(ratio, 2),
        "floor": 15,
        "what": "sklearn load_svmlight_file / ours",
    }


if __name__ == "__main__":
    print(json.dumps(measure()))
