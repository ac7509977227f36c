"""Pointwise regression with boosted trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.rankers.trees.boosting import TreeObjective, TreeRanker, row_weights
from rankpolicy.rankers.trees.streamed import Gradients
from rankpolicy.settings import documented


@final
@documented
@dataclass(kw_only=True, eq=False, repr=False)
class BoostedRegression(TreeRanker):
    """Predict the label of each item with gradient-boosted trees (Friedman 2001, by LightGBM) and rank by the prediction."""

    name: ClassVar[str] = "boosted-regression"
    learns_from_single_items: ClassVar[bool] = True

    def _parameters(self) -> dict[str, Any]:
        return super()._parameters() | {"objective": "regression"}

    def _gradients(self, train: RankingDataset, objective: TreeObjective | None) -> tuple[Gradients, float]:
        labels, weights = np.asarray(train.labels_by_query), row_weights(train)
        hessian = np.ones(len(labels), np.float32) if weights is None else weights.astype(np.float32)

        def of_scores(scores: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            return (scores - labels) * hessian, hessian

        return of_scores, float(np.average(labels, weights=weights))
