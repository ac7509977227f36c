"""Cross-validation folds as LETOR ships them: ``Fold1/{train,vali,test}.txt``, ``Fold2/...``, or the five parts they are made of."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rankpolicy.data.dataset import RankingDataset, concatenate
from rankpolicy.data.formats.letor import read_letor
from rankpolicy.types import RankPolicyError

PARTS = {"train": ("train",), "valid": ("vali", "valid"), "test": ("test",)}
SUFFIXES = (".txt", ".txt.gz", ".txt.zst")
NUM_LETOR_PARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Queries to learn from, to choose settings by, and to measure on."""

    name: str
    train: RankingDataset
    valid: RankingDataset
    test: RankingDataset


def read_folds(directory: str | os.PathLike[str]) -> list[Fold]:
    """Read every fold of a directory, Fold2 before Fold10; all parts of all folds get the same number of features.

    A directory with S1.txt to S5.txt instead holds the parts of LETOR's five folds: fold 1 learns from S1, S2 and S3, chooses by S4 and
    measures on S5; fold 2 learns from S2, S3 and S4, and so on around.
    """
    root = Path(directory)
    if not root.is_dir():
        raise RankPolicyError(
            f"{root} must be a directory that holds Fold1, Fold2, ...; "
            f"it is {'a file' if root.exists() else 'not there'}."
        )
    folders = sorted((path for path in root.glob("Fold*") if path.is_dir()), key=_natural_order)
    if not folders and any((root / f"S1{suffix}").is_file() for suffix in SUFFIXES):
        return _folds_of_parts([read_letor(_find(root, (f"S{part + 1}",))) for part in range(NUM_LETOR_PARTS)])
    if not folders:
        raise RankPolicyError(
            f"{root} must hold directories Fold1, Fold2, ... with train, vali and test files, or the parts S1 to S5; it holds none."
        )
    # All paths first: a missing file is reported before minutes of reading.
    files = [{part: _find(folder, names) for part, names in PARTS.items()} for folder in folders]
    read = [{part: read_letor(file) for part, file in parts.items()} for parts in files]
    width = max(dataset.num_features for parts in read for dataset in parts.values())
    return [
        Fold(name=folder.name, **{part: _widened(dataset, width) for part, dataset in parts.items()})
        for folder, parts in zip(folders, read, strict=True)
    ]


def _folds_of_parts(parts: list[RankingDataset]) -> list[Fold]:
    width = max(part.num_features for part in parts)
    parts = [_widened(part, width) for part in parts]
    around = [[parts[(first + step) % len(parts)] for step in range(len(parts))] for first in range(len(parts))]
    return [
        Fold(name=f"Fold{number}", train=concatenate(train), valid=valid, test=test)
        for number, (*train, valid, test) in enumerate(around, 1)
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
