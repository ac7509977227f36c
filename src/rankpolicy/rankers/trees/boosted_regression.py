"""Pointwise regression with boosted trees."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.rankers.trees.boosting import TreeObjective, TreeRanker


@final
@settings_class
class BoostedRegression(TreeRanker):
    """Predict the label of each item with gradient-boosted trees (Friedman 2001, by LightGBM) and rank by the prediction."""

    name: ClassVar[str] = "boosted-regression"
    learns_from_single_items: ClassVar[bool] = True

    loss: str = setting(
        "squared",
        "What trees minimise: the squared error of each label, or that of differences from the mean of the query "
        "('within-query'), which labels that are shifted by query do not disturb.",
        choices=("squared", "within-query"),
    )

    def _parameters(self) -> dict[str, Any]:
        objective = {"objective": "regression"} if self.loss == "squared" else {}
        return super()._parameters() | objective

    def _objective(self, train: RankingDataset) -> TreeObjective | None:
        return None if self.loss == "squared" else _WithinQueries(train)


class _WithinQueries:
    """Half the squared error of scores and labels, both minus their mean over the query; it records no curve."""

    def __init__(self, train: RankingDataset) -> None:
        weights = np.ones(train.num_queries) if train.query_weights is None else train.query_weights
        self._weights = np.repeat(weights / weights.mean(), train.sizes)
        self._labels, self._starts, self._sizes = train.labels_by_query, train.query_offsets[:-1], train.sizes
        self.history: dict[str, list[float]] = {}

    def __call__(self, scores: NDArray[np.float64], /) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        errors = scores - self._labels
        means = np.add.reduceat(errors, self._starts) / self._sizes
        return self._weights * (errors - np.repeat(means, self._sizes)), self._weights
