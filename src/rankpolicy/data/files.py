"""One door for files of every format, for the command line."""

from __future__ import annotations

import os
from pathlib import Path

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.letor import read_letor
from rankpolicy.data.parquet import read_parquet
from rankpolicy.types import RankPolicyError


def read_dataset(path: str | os.PathLike[str], *, num_features: int | None = None) -> RankingDataset:
    """Read a file ending in .parquet as Parquet, any other as LETOR; ``num_features`` is the width a model expects."""
    if Path(path).suffix != ".parquet":
        return read_letor(path, num_features=num_features)
    dataset = read_parquet(path)
    if num_features is not None and dataset.num_features != num_features:
        raise RankPolicyError(f"{path} must have {num_features} feature columns; it has {dataset.num_features}.")
    return dataset
