"""Files with the sizes of consecutive queries, next to a data file: LightGBM's ``.query`` and XGBoost's ``.group``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankpolicy.files import read_text_bytes
from rankpolicy.types import RankPolicyError

SUFFIXES = (".query", ".group")


def read_group_sizes(data_file: Path, num_items: int) -> NDArray[np.int64]:
    """The number of items of each query, from the file next to a data file whose lines have no qid."""
    is_compressed = data_file.suffix in (".gz", ".bz2", ".zst")
    stems = [data_file, data_file.with_suffix("")] if is_compressed else [data_file]
    candidates = [stem.with_name(stem.name + suffix) for stem in stems for suffix in SUFFIXES]
    size_file = next((candidate for candidate in candidates if candidate.is_file()), None)
    if size_file is None:
        raise RankPolicyError(
            f"{data_file}: expected qid:<query id> after the label of each line, or the sizes of the queries in "
            f"{' or '.join(candidate.name for candidate in candidates)}; got neither."
        )
    sizes = [
        _parse_size(size_file, number, line)
        for number, line in enumerate(read_text_bytes(size_file).tobytes().split(b"\n"), 1)
        if line.strip()
    ]
    if sum(sizes) != num_items:
        raise RankPolicyError(
            f"the sizes in {size_file} must add up to the items of {data_file.name}, {num_items}; "
            f"they add up to {sum(sizes)}. "
            "Are both files of the same data?"
        )
    return np.array(sizes, np.int64)


def _parse_size(size_file: Path, number: int, line: bytes) -> int:
    word = line.strip().decode("utf-8", "backslashreplace")
    if not (word.isascii() and word.isdigit() and int(word) > 0):
        raise RankPolicyError(
            f"{size_file}, line {number}: expected the number of items of a query, 1 or more; got {word[:40]!r}."
        )
    return int(word)
