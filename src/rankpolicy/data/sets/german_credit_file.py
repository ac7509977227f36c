"""The file ``german.data`` of the Statlog German Credit set (UCI; Hofmann 1994).

It has 1000 lines of 20 attributes and a class, which is 1 for creditworthy people and 2 for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankpolicy.display import short_repr
from rankpolicy.types import RankPolicyError

# The codes of each attribute, as documented with the data; None for a number.
ATTRIBUTES: dict[str, tuple[str, ...] | None] = {
    "status": ("A11", "A12", "A13", "A14"),
    "duration": None,
    "credit_history": ("A30", "A31", "A32", "A33", "A34"),
    "purpose": ("A40", "A41", "A42", "A43", "A44", "A45", "A46", "A47", "A48", "A49", "A410"),
    "amount": None,
    "savings": ("A61", "A62", "A63", "A64", "A65"),
    "employment": ("A71", "A72", "A73", "A74", "A75"),
    "rate": None,
    "status_sex": ("A91", "A92", "A93", "A94", "A95"),
    "debtors": ("A101", "A102", "A103"),
    "residence": None,
    "property": ("A121", "A122", "A123", "A124"),
    "age": None,
    "other_plans": ("A141", "A142", "A143"),
    "housing": ("A151", "A152", "A153"),
    "num_credits": None,
    "job": ("A171", "A172", "A173", "A174"),
    "num_liable": None,
    "telephone": ("A191", "A192"),
    "foreign": ("A201", "A202"),
}
FEMALE = ("A92", "A95")
CREDITWORTHY = {"1": 1.0, "2": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """The people of german.data, in the order of the file."""

    features: NDArray[np.float64]  # Features (person, feature): numbers as they are, codes one-hot
    is_number: NDArray[np.bool_]  # Whether each feature is a number (feature,)
    labels: NDArray[np.float64]  # 1 for creditworthy people, 0 for others (person,)
    groups: NDArray[np.int64]  # 1 for women, 0 for men (person,)
    feature_names: tuple[str, ...]  # Name of each feature

    __repr__ = short_repr


def read_people(path: str | Path) -> People:
    """Read ``german.data``; a line without 20 attributes and a class is an error that names the line."""
    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RankPolicyError(
            f"{path} must be the text file german.data of the UCI German Credit set: {error}."
        ) from None
    rows, labels, groups = [], [], []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                features, label, is_female = parse_person(line.split())
            except RankPolicyError as error:
                raise RankPolicyError(f"{path}, line {number}: {error}") from None
            rows.append(features)
            labels.append(label)
            groups.append(is_female)
    if not rows:
        raise RankPolicyError(f"{path} must hold one person per line; it is empty.")
    columns = [(name, code) for name, codes in ATTRIBUTES.items() for code in codes or ("",)]
    return People(
        features=np.array(rows),
        is_number=np.array([not code for _, code in columns]),
        labels=np.array(labels),
        groups=np.array(groups, dtype=np.int64),
        feature_names=tuple(f"{name}={code}" if code else name for name, code in columns),
    )


def parse_person(fields: Sequence[str]) -> tuple[list[float], float, bool]:
    """Features, label and whether the person is female."""
    if len(fields) != len(ATTRIBUTES) + 1:
        raise RankPolicyError(f"expected 20 attributes and a class, 21 fields; got {len(fields)}.")
    features: list[float] = []
    for field, (name, codes) in zip(fields[:-1], ATTRIBUTES.items(), strict=True):
        if codes is None:
            features.append(_number(name, field))
        elif field in codes:
            features.extend(float(field == code) for code in codes)
        else:
            raise RankPolicyError(f"{name} must be one of {', '.join(codes)}; got {field!r}.")
    if fields[-1] not in CREDITWORTHY:
        raise RankPolicyError(f"the class must be 1 (creditworthy) or 2 (not); got {fields[-1]!r}.")
    return features, CREDITWORTHY[fields[-1]], fields[list(ATTRIBUTES).index("status_sex")] in FEMALE


def _number(name: str, field: str) -> float:
    if not field.isdecimal():
        raise RankPolicyError(f"{name} must be a whole number; got {field!r}.")
    return float(field)
