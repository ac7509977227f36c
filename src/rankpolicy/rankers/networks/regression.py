"""Pointwise regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.scaling import fit_scaling
from rankpolicy.models import Linear
from rankpolicy.objectives import SquaredError
from rankpolicy.rankers.base import Course
from rankpolicy.rankers.networks.network import NetworkRanker
from rankpolicy.types import RankPolicyError


@final
@dataclass(kw_only=True, eq=False, repr=False)
class Regression(NetworkRanker):
    """Predict the label of each item by least squares, and rank by the prediction.

    A linear model is solved for, not trained: with features x and labels y centred, w = (xᵀx / items + weight_decay)⁻¹ xᵀy / items, where
    sums and centres count the items of a query by its weight.
    """

    name: ClassVar[str] = "regression"
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"model": "linear"},
        {"model": "linear", "weight_decay": 1e-2},
        {"hidden": (32,), "dropout": 0.0},
        {"learning_rate": 3e-4},
    )

    def _objective(self, train: RankingDataset) -> SquaredError:
        return SquaredError()

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, course: Course) -> None:
        if self.model != "linear":
            super()._fit(train, valid, course)
            return
        if course.checkpoint is not None:
            raise RankPolicyError(
                "a linear Regression keeps no checkpoints: it is solved in one go. Leave checkpoint out."
            )
        self._inputs = scaling = fit_scaling(self.scaling, train)
        x = scaling.apply(train.features, train.offsets).astype(np.float64)
        y = train.labels.astype(np.float64)
        shares = _shares(train)
        x_mean, y_mean = shares @ x, shares @ y
        weights = _ridge_weights(x - x_mean, y - y_mean, shares, weight_decay=self.weight_decay)
        self._network, self._inputs = self._new_network(x.shape[1]).eval(), scaling
        with torch.no_grad():
            for member in self._network.members:
                assert isinstance(member, Linear)
                member.output.weight.copy_(torch.from_numpy(weights))
                member.output.bias.fill_(float(y_mean - x_mean @ weights))
        squared_error = float(shares @ np.square(self._scores(train) - y))
        self.best_iteration_, self.best_score_ = 1, None
        self.evals_result_ = {"training": {self._objective(train).report_name: [squared_error]}}
        if valid is not None:
            validation = self._validation(valid, scaling, torch.device("cpu"))
            self.best_score_ = validation.score(self._network_scores(validation.features))
            self.evals_result_["valid_0"] = {validation.name: [self.best_score_]}


def _shares(train: RankingDataset) -> NDArray[np.float64]:
    """How much each item counts (items,), of sum 1."""
    if train.query_weights is None:
        return np.full(train.num_items, 1 / train.num_items)
    of_items = np.repeat(train.query_weights, train.sizes)
    return np.asarray(of_items / of_items.sum(), np.float64)


def _ridge_weights(
    x: NDArray[np.float64], y: NDArray[np.float64], shares: NDArray[np.float64], *, weight_decay: float
) -> NDArray[np.float64]:
    """The w (features,) with the least sum of shares * (y - x w)² + weight_decay * w², the shortest of several."""
    weighed = x.T * shares
    gram = weighed @ x + weight_decay * np.eye(x.shape[1])
    # Columns that say nearly the same, such as a feature and its quantile, leave directions of rounding errors.
    return np.asarray(np.linalg.lstsq(gram, weighed @ y, rcond=1e-10)[0], dtype=np.float64)
