"""Cross-validation folds in the layout of LETOR: ``Fold1/{train,vali,test}.txt``, ``Fold2/...``, or the five parts S1 to S5."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rankpolicy.data.arrays import concatenate
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.letor import read_letor
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.types import RankPolicyError

PARTS = {"train": ("train",), "valid": ("vali", "valid"), "test": ("test",)}
SUFFIXES = (".txt", ".txt.gz", ".txt.bz2", ".txt.zst")
NUM_LETOR_PARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Training, validation and test queries of one fold.

    Parameters
    ----------
    name
        Name of the fold, such as "Fold1".
    train
        Queries to learn from.
    valid
        Queries to choose settings by.
    test
        Queries to measure on.
    """

    name: str
    train: RankingDataset
    valid: RankingDataset
    test: RankingDataset


@checked_kinds
def read_folds(directory: str | os.PathLike[str]) -> list[Fold]:
    """Read all folds of a directory, in the order of their numbers; all get the same number of features.

    A directory that holds S1.txt to S5.txt instead gives LETOR's five folds: fold 1 trains on S1, S2 and S3, validates on S4 and tests on
    S5; fold 2 trains on S2, S3 and S4, and so on in a circle.

    Parameters
    ----------
    directory
        A directory that holds Fold1, Fold2, ..., each with train, vali (or valid) and test files in LETOR format, plain or compressed; or
        the files S1 to S5.
    """
    root = Path(directory)
    if not os.path.isdir(root):
        raise RankPolicyError(
            f"{root} must be a directory that holds Fold1, Fold2, ...; "
            f"it is {'a file' if os.path.exists(root) else 'not there'}."
        )
    folders = sorted((path for path in root.glob("Fold*") if path.is_dir()), key=_natural_order)
    if not folders and any((root / f"S1{suffix}").is_file() for suffix in SUFFIXES):
        return _folds_of_parts([read_letor(_find(root, (f"S{number + 1}",))) for number in range(NUM_LETOR_PARTS)])
    if not folders:
        raise RankPolicyError(
            f"{root} must hold directories Fold1, Fold2, ... with train, vali and test files, or the parts S1 to S5; it holds none."
        )
    # All paths first, so that a missing file is reported before minutes of reading.
    files = [{role: _find(folder, names) for role, names in PARTS.items()} for folder in folders]
    read = [{role: read_letor(file) for role, file in by_role.items()} for by_role in files]
    width = max(dataset.num_features for by_role in read for dataset in by_role.values())
    return [
        Fold(name=folder.name, **{role: _widened(dataset, width) for role, dataset in by_role.items()})
        for folder, by_role in zip(folders, read, strict=True)
    ]


def _folds_of_parts(datasets: list[RankingDataset]) -> list[Fold]:
    width = max(dataset.num_features for dataset in datasets)
    datasets = [_widened(dataset, width) for dataset in datasets]
    rotated = [datasets[first:] + datasets[:first] for first in range(len(datasets))]
    return [
        Fold(name=f"Fold{number}", train=concatenate(train), valid=valid, test=test)
        for number, (*train, valid, test) in enumerate(rotated, 1)
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
    """The dataset with columns of 0 appended up to this width: features that none of its lines has."""
    missing = width - dataset.num_features
    return (
        replace(dataset, features_by_query=np.pad(dataset.features_by_query, ((0, 0), (0, missing))))
        if missing
        else dataset
    )


def _natural_order(path: Path) -> list[tuple[int, str]]:
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", path.name)]
