"""Missing values and categories as numbers that networks and linear rankers can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.sparse import SparseFeatures
from rankpolicy.data.stored.features import StoredFeatures
from rankpolicy.types import RankPolicyError

Features = NDArray[np.float32]  # (items, features)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureEncoding:
    """How missing values are filled, and which columns say more about them; fitted on training data.

    - A missing number is replaced by the column's median in the training data, and an extra column of 0 and 1 says where it was missing.
      Columns that were complete in training have no such extra column.
    - A categorical column becomes 0, with one extra column of 0 and 1 per category; an item whose category is missing or was not seen in
      training has 0 in all of them.
    """

    fill: NDArray[np.float32]  # What replaces missing values of each feature (features,)
    indicators: NDArray[np.float32]  # 1 for the features that have an indicator of missing values (features,)
    num_categories: NDArray[np.float32]  # Number of categories of each feature, 0 for numbers (features,)

    @property
    def num_extra(self) -> int:
        """Number of extra columns."""
        return int(self.indicators.sum() + self.num_categories.sum())

    def split(self, features: Features) -> tuple[Features, Features]:
        """Features without missing values (items, features), and the extra columns (items, extra)."""
        extra = np.zeros((len(features), self.num_extra), np.float32)
        marked = np.flatnonzero(self.indicators)
        extra[:, : len(marked)] = np.isnan(features[:, marked])
        filled = np.where(np.isnan(features), self.fill, features)
        start = len(marked)
        for column in np.flatnonzero(self.num_categories):
            rows = np.flatnonzero(~np.isnan(features[:, column]))
            extra[rows, start + features[rows, column].astype(np.int64)] = 1
            filled[:, column] = 0
            start += int(self.num_categories[column])
        return filled, extra

    def to_arrays(self) -> dict[str, NDArray[np.float32]]:
        """The arrays to save."""
        return {"fill": self.fill, "indicators": self.indicators, "num_categories": self.num_categories}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.float32]]) -> FeatureEncoding:
        """The encoding whose arrays ``to_arrays`` returned."""
        encoding = cls(**arrays)
        counts = encoding.num_categories
        if (
            len({array.shape for array in arrays.values()}) > 1
            or not np.isin(encoding.indicators, (0, 1)).all()
            or not ((counts >= 0) & (counts <= 1_000_000) & (counts == np.round(counts))).all()
        ):
            raise RankPolicyError(
                "the saved encoding of missing values and categories does not fit. Is the file damaged?"
            )
        return encoding


ARRAY_NAMES = {"fill", "indicators", "num_categories"}


def fit_encoding(dataset: RankingDataset) -> FeatureEncoding | None:
    """The encoding of training data; None where nothing is missing and nothing is categorical."""
    categories = dataset.categories or {}
    names = dataset.feature_names or ()
    num_categories = np.zeros(dataset.num_features, np.float32)
    for name, members in categories.items():
        num_categories[names.index(name)] = len(members)
    is_category = np.isin(np.arange(dataset.num_features), [names.index(name) for name in categories])
    has_missing = _columns_with_missing(dataset.features_by_query) & ~is_category
    if not has_missing.any() and not is_category.any():
        return None
    fill = np.zeros(dataset.num_features, np.float32)
    if isinstance(dataset.features_by_query, StoredFeatures):
        for column, (values, counts) in enumerate(
            zip(dataset.features_by_query.values, dataset.features_by_query.counts(), strict=True)
        ):
            fill[column] = _counted_median(values[:-1], counts[:-1])
    else:
        for column in np.flatnonzero(~is_category):
            values = dataset.features_by_query[:, column]
            present = values[~np.isnan(values)]
            fill[column] = np.median(present) if len(present) else 0
    return FeatureEncoding(fill=fill, indicators=has_missing.astype(np.float32), num_categories=num_categories)


def _columns_with_missing(features: Features) -> NDArray[np.bool_]:
    """Which features have a missing value (features,)."""
    if isinstance(features, SparseFeatures):
        return np.isin(np.arange(features.shape[1]), features.places_where(np.isnan)[:, 1])
    if isinstance(features, StoredFeatures):
        return features.counts()[:, -1] > 0
    return np.asarray(np.isnan(features).any(axis=0))


def _counted_median(values: NDArray[np.float32], counts: NDArray[np.int64]) -> float:
    """The median of values in ascending order that occur so often; 0 of none."""
    if not counts.any():
        return 0.0
    values, ends = values[counts > 0], np.cumsum(counts[counts > 0])
    below, above = ((ends[-1] - 1) // 2, ends[-1] // 2)
    return float(np.mean(values[np.searchsorted(ends, [below, above], side="right")]))
