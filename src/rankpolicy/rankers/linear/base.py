"""The base of rankers whose score is a weighted sum of scaled features; subclasses find the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.scaling import SCALINGS, restored_scaling
from rankpolicy.declarations.settings import seed_setting, setting
from rankpolicy.rankers.base import Ranker
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.exporting.engine_models import Layers
    from rankpolicy.rankers.exporting.graph import Graph


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRanker(Ranker):
    """The settings that all linear rankers share; ``_fit`` sets ``_scaling`` and ``_weights`` (scaled features,)."""

    scaling: str = setting(
        "standardize",
        "Scaling of the features, fitted on the training data and saved with the model.",
        choices=SCALINGS,
    )
    valid_metric: Any = setting("ndcg@10", "Metric measured on validation data, by name or as a metric.")
    random_state: int | None = seed_setting(
        0, "Seed of random choices, for the rankers that make any (CoordinateAscent). None draws a new one each time."
    )

    @property
    def _needs_queries(self) -> bool:
        self._require_fitted()
        return self._scaling.needs_queries

    def _scores(self, dataset: RankingDataset) -> NDArray[np.float64]:
        return self._scaling.apply(dataset.features_by_query, dataset.query_offsets) @ self._weights

    def _onnx_scores(self, graph: Graph) -> str:
        from rankpolicy.rankers.exporting.linear import add_weighted_sum
        from rankpolicy.rankers.exporting.scaling import add_scaling

        return add_weighted_sum(graph, add_scaling(graph, self._scaling), self._weights)

    def _engine_model(self, names: Sequence[str]) -> Layers:
        from rankpolicy.rankers.exporting.engine_models import Layers

        return Layers.of_weights(self._scaling, self._weights, method=type(self).__name__)

    def _files(self) -> dict[str, bytes]:
        arrays = {"weights": self._weights} | {f"scaling.{k}": v for k, v in self._scaling.to_arrays().items()}
        return {"weights.safetensors": save(arrays)}

    def _restore(self, files: dict[str, bytes]) -> None:
        arrays = load(files["weights.safetensors"])
        self._weights: NDArray[np.float64] = arrays.pop("weights")
        of_scaling = {name.removeprefix("scaling."): array for name, array in arrays.items()}
        self._scaling = restored_scaling(self.scaling, of_scaling, num_features=self.num_features_)
        expected_shape = (self._scaling.num_scaled(self.num_features_),)
        if (
            self._weights.shape != expected_shape
            or self._weights.dtype.kind != "f"
            or not np.isfinite(self._weights).all()
        ):
            raise RankPolicyError(
                f"the weights must be finite numbers of shape {expected_shape}; got {self._weights.dtype} of shape {self._weights.shape}. "
                "Copy or train the model again."
            )
