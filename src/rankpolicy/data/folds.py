"""Cross-validation folds as LETOR ships them: ``Fold1/{train,vali,test}.txt``, ``Fold2/...``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.letor import read_letor
from rankpolicy.types import RankPolicyError

PARTS = {"train": ("train",), "valid": ("vali", "valid"), "test": ("test",)}
SUFFIXES = (".txt", ".txt.gz", ".txt.zst")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Queries to learn from, to choose settings by, and to measure on."""

    name: str
    train: RankingDataset
    valid: RankingDataset
    test: RankingDataset


def read_folds(directory: str | os.PathLike[str]) -> list[Fold]:
    """Read every fold of a directory, Fold2 before Fold10; all parts of all folds get the same number of features."""
    root = Path(directory)
    if not root.is_dir():
        raise RankPolicyError(
            f"{root} must be a directory that holds Fold1, Fold2, ...; "
            f"it is {'a file' if root.exists() else 'not there'}."
        )
    folders = sorted((path for path in root.glob("Fold*") if path.is_dir()), key=_natural_order)
    if not folders:
        raise RankPolicyError(
            f"{root} must hold directories Fold1, Fold2, ... with train, vali and test files; it holds none."
        )
    # All paths first: a missing file is reported before minutes of reading.
    files = [{part: _find(folder, names) for part, names in PARTS.items()} for folder in folders]
    read = [{part: read_letor(file) for part, file in parts.items()} for parts in files]
    width = max(dataset.num_features for parts in read for dataset in parts.values())
    return [
        Fold(name=folder.name, **{part: _widened(dataset, width) for part, dataset in parts.items()})
        for folder, parts in zip(folders, read, strict=True)
    ]


def _find(folder: Path, names: tuple[str, ...]) -> Path:
    candidates = [folder / f"{name}{suffix}" for name in names for suffix in SUFFIXES]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise RankPolicyError(
        f"{folder} must hold {' or '.join(candidate.name for candidate in candidates)}; it holds none of them."
    )


def _widened(dataset: RankingDataset, width: int) -> RankingDataset:
    """The dataset with columns of 0 up to this width: features that none of its lines mentions."""
    missing = width - dataset.num_features
    return replace(dataset, features=np.pad(dataset.features, ((0, 0), (0, missing)))) if missing else dataset


def _natural_order(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name)]
