"""Pointwise regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import ReadWhen, setting_of, settings_class
from rankpolicy.models.inputs.features import FeatureInputs
from rankpolicy.models.linear import Linear
from rankpolicy.models.linear_networks import LinearNetworks
from rankpolicy.rankers.fits import DECISIVE, FitOptions, FitSteps
from rankpolicy.rankers.networks.network import NetworkRanker
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.objectives import SquaredError

_REPORT = "loss"
_IS_TRAINED = ReadWhen(
    condition="the model is not linear; a linear Regression is solved for, not trained",
    holds=lambda ranker: not isinstance(ranker._model, Linear),
)


@final
@settings_class
class Regression(NetworkRanker):
    """Predict the label of each item by least squares, and rank by the prediction.

    A linear model is solved for, not trained: with features x and labels y centred, w = (xᵀx / items + weight_decay)⁻¹ xᵀy / items, where
    sums and means weigh the items of a query by its weight.
    """

    name: ClassVar[str] = "regression"
    learns_from_single_items: ClassVar[bool] = True
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"model": "linear"},
        {"model": "linear", "weight_decay": 1e-2},
        {"model__hidden": (32,), "model__dropout": 0.0},
        {"learning_rate": 3e-4},
    )

    epochs: int = setting_of(NetworkRanker, "epochs", read_when=_IS_TRAINED)
    batch_queries: int = setting_of(NetworkRanker, "batch_queries", read_when=_IS_TRAINED)
    learning_rate: float = setting_of(NetworkRanker, "learning_rate", read_when=_IS_TRAINED)
    betas: tuple[float, ...] = setting_of(NetworkRanker, "betas", read_when=_IS_TRAINED)
    patience: int | None = setting_of(NetworkRanker, "patience", read_when=_IS_TRAINED)
    num_networks: int = setting_of(NetworkRanker, "num_networks", read_when=_IS_TRAINED)
    device: str = setting_of(NetworkRanker, "device", read_when=_IS_TRAINED)

    def _objective(self, train: RankingDataset) -> SquaredError:
        from rankpolicy.objectives import SquaredError

        return SquaredError()

    @property
    def _is_array_model(self) -> bool:
        return isinstance(self._model, Linear)

    def _check_init(self, init: Any, train: RankingDataset) -> None:
        if isinstance(self._model, Linear):
            raise RankPolicyError(
                "a linear Regression cannot continue from a fitted ranker: it is solved for, not trained. Leave init out."
            )
        super()._check_init(init, train)

    def _training(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> FitSteps:
        if not isinstance(self._model, Linear):
            yield from super()._training(train, valid, options)
            return
        options.refuse_checkpoint("a linear Regression keeps no checkpoints: it is solved in one go.")
        self._inputs = self._model.fit_inputs(train, scaling=self.scaling, device=self.device)
        assert isinstance(self._inputs, FeatureInputs)
        x = self._inputs.arrays(train).astype(np.float64)
        y = train.labels_by_query.astype(np.float64)
        shares = _shares(train)
        x_mean, y_mean = shares @ x, shares @ y
        weights = _ridge_weights(x - x_mean, y - y_mean, shares, weight_decay=self.weight_decay)
        matrix = np.append(weights, y_mean - x_mean @ weights).astype(np.float32)
        self._network = LinearNetworks(np.tile(matrix, (self.num_networks, 1)))
        squared_error = float(shares @ np.square(self._scores(train) - y))
        self.best_iteration_, self.best_score_ = 1, None
        self.evals_result_ = {"training": {_REPORT: [squared_error]}}
        if valid is not None:
            validation = self._validation(valid, self._inputs, None)
            self.best_score_ = validation.score(self._network_scores(validation.features))
            self.evals_result_[DECISIVE] = {validation.name: [self.best_score_]}


def _shares(train: RankingDataset) -> NDArray[np.float64]:
    """Weight of each item (items,); the sum is 1."""
    if train.query_weights is None:
        return np.full(train.num_items, 1 / train.num_items)
    of_items = np.repeat(train.query_weights, train.sizes)
    return np.asarray(of_items / of_items.sum(), np.float64)


def _ridge_weights(
    x: NDArray[np.float64], y: NDArray[np.float64], shares: NDArray[np.float64], *, weight_decay: float
) -> NDArray[np.float64]:
    """The w (features,) with the least sum of shares * (y - x w)² + weight_decay * w², the shortest if there are several."""
    weighed = x.T * shares
    gram = weighed @ x + weight_decay * np.eye(x.shape[1])
    # Nearly equal columns, such as a feature and its quantile, leave directions that are rounding errors only.
    return np.asarray(np.linalg.lstsq(gram, weighed @ y, rcond=1e-10)[0], dtype=np.float64)
