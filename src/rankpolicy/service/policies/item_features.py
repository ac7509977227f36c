"""Policies that learn from the features of items: which features they read, and the numbers of a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.settings import check_settings, setting, settings_class
from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.policies.served_policy import ServedPolicy
from rankpolicy.types import RankPolicyError

LARGEST = 1e3  # of a feature: larger ones would leave no digits for the others
MOST_COLUMNS = 512


@settings_class
class FeaturePolicy(ServedPolicy):
    """A policy over items with features, by name or as a list of numbers."""

    features: tuple[str, ...] = setting((), "Names of the features that are read, where items have features by name.")
    num_features: int | None = setting(
        None, "How many features items have, where they come as lists of numbers.", at_least=1, at_most=MOST_COLUMNS
    )

    def __post_init__(self) -> None:
        self.features = tuple(self.features) if isinstance(self.features, list) else self.features
        check_settings(self)
        if bool(self.features) == (self.num_features is not None):
            raise RankPolicyError("give features (their names) or num_features (how many there are), one of them.")
        self._size = len(self.features) or (self.num_features or 0)
        if self._size > MOST_COLUMNS or len(set(self.features)) < len(self.features):
            raise RankPolicyError(f"features must be up to {MOST_COLUMNS} different names.")

    def _rows(self, request: RankRequest, names: Sequence[str]) -> NDArray[np.float64]:
        by_id = {item.id: item for item in request.items}
        values = [self._row(by_id[name]) for name in names]
        if any(value is None or isinstance(value, str) for row in values for value in row):
            raise RankPolicyError(
                "features that a policy learns from must be numbers; got a text or null. Send 0 or 1 per category, and fill missing values."
            )
        rows = np.array(values, np.float64).reshape(len(names), self._size)
        if not (np.abs(rows) <= LARGEST).all():
            raise RankPolicyError(f"features that a policy learns from must be between -{LARGEST:g} and {LARGEST:g}.")
        return rows

    def _row(self, item: Any) -> list[Any]:
        features = item.features
        if self.features:
            if not isinstance(features, dict):
                raise RankPolicyError(
                    f"item {item.id!r:.80} must have features by name: {', '.join(self.features)[:200]}."
                )
            missing = [name for name in self.features if name not in features]
            if missing:
                raise RankPolicyError(f"item {item.id!r:.80} must have the feature {missing[0]!r:.80}.")
            return [features[name] for name in self.features]
        if not isinstance(features, list) or len(features) != self._size:
            raise RankPolicyError(f"item {item.id!r:.80} must have a list of {self._size} features.")
        return features
