"""Categorical features: a column of names is stored as numbers, and the names beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rankpolicy.data.dataset import RankingDataset

Codes = NDArray[np.float32]  # place of each item's category among the names, NaN where it is missing


def encoded(values: Sequence[Any]) -> tuple[Codes, tuple[str, ...]]:
    """Codes of category names, and the names in alphabetical order; None and NaN are missing.

    >>> encoded(["red", None, "blue", "red"])
    (array([ 1., nan,  0.,  1.], dtype=float32), ('blue', 'red'))
    """
    present = np.array([value is not None and value == value for value in values], np.bool_)
    names, codes_of_present = np.unique(
        [str(value) for value, is_present in zip(values, present, strict=True) if is_present], return_inverse=True
    )
    codes = np.full(len(present), np.nan, np.float32)
    codes[present] = codes_of_present
    return codes, tuple(names.tolist())


def category_text(value: Any, names: Sequence[str] = ()) -> Any:
    """The category that a number of JSON names, where 1 and 1.0 are the same; texts and None as they are.

    >>> category_text(1.0, ["1", "2"]), category_text(1.0, ["1.0"]), category_text("1")
    ('1', '1.0', '1')
    """
    if not isinstance(value, float) or str(value) in names or not value.is_integer():
        return value if value is None else str(value)
    return str(int(value))


def recoded(codes: Codes, names: Sequence[str], new_names: Sequence[str]) -> Codes:
    """Codes among other names; a category that is not among them becomes missing.

    >>> recoded(np.array([0, 1, np.nan], np.float32), ["blue", "red"], ["green", "red"])
    array([nan,  1., nan], dtype=float32)
    """
    code_of = {name: code for code, name in enumerate(new_names)}
    new_codes = np.array([*(code_of.get(name, np.nan) for name in names), np.nan], np.float32)
    return np.asarray(new_codes[np.where(np.isnan(codes), len(names), codes).astype(np.int64)])


def with_categories(dataset: RankingDataset, categories: Mapping[str, Sequence[str]]) -> RankingDataset:
    """The dataset with its categorical columns in the codes of ``wanted``, the categories of each column by name."""
    has = dataset.categories or {}
    if {name: tuple(names) for name, names in categories.items()} == has:
        return dataset
    features = dataset.features_by_query.copy()
    for name, names in categories.items():
        column = (dataset.feature_names or ()).index(name)
        features[:, column] = recoded(features[:, column], has[name], names)
    return replace(
        dataset, features_by_query=features, categories={name: tuple(names) for name, names in categories.items()}
    )


def decoded(codes: Codes, names: Sequence[str]) -> list[str | None]:
    """The category of each item; None where it is missing."""
    return [None if np.isnan(code) else names[int(code)] for code in codes.tolist()]
