"""Exact Shapley values of rankers whose score is a weighted sum of scaled features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.scaling import SCALINGS, FeatureScaling

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker


def linear_values(
    ranker: Ranker, item: NDArray[np.float32], references: NDArray[np.float32]
) -> NDArray[np.float64] | None:
    """The value of each feature (feature,): weight * (scaled feature of the item - mean of the scaled references).

    A feature that scaling turns into several columns (its quantile, an indicator of missing values, one column per category) has the sum
    over these. Scaling may bend a feature as it likes: as long as every column depends on one feature, the score is a sum of functions of
    single features, and this is its exact interventional Shapley value. None where the ranker is not linear in this sense.
    """
    weights_and_scaling = None if ranker._needs_queries else _weights_and_scaling(ranker)
    if weights_and_scaling is None:
        return None
    weights, scaling = weights_and_scaling
    scaled = scaling.apply(np.concatenate([item[None], references])).astype(np.float64)
    by_column = weights * (scaled[0] - scaled[1:].mean(axis=0))
    values = np.zeros(len(item))
    np.add.at(values, features_of_columns(scaling, len(item)), by_column)
    return values


def features_of_columns(scaling: FeatureScaling, num_features: int) -> NDArray[np.int64]:
    """The feature that each column of scaled features comes from (column,)."""
    features = [np.arange(num_features)] * (2 if SCALINGS[scaling.kind].adds_quantiles else 1)
    if scaling.encoding is not None:
        counts = scaling.encoding.num_categories.astype(np.int64)
        features += [np.flatnonzero(scaling.encoding.indicators), np.repeat(np.arange(num_features), counts)]
    return np.concatenate(features)


def _weights_and_scaling(ranker: Ranker) -> tuple[NDArray[np.float64], FeatureScaling] | None:
    from rankpolicy.models.inputs.features import FeatureInputs
    from rankpolicy.models.linear import LinearNetwork
    from rankpolicy.rankers.linear.base import LinearRanker
    from rankpolicy.rankers.networks.network import NetworkRanker

    if isinstance(ranker, LinearRanker):
        return ranker._weights.astype(np.float64), ranker._scaling
    if not isinstance(ranker, NetworkRanker) or not isinstance(ranker._inputs, FeatureInputs):
        return None
    networks = [member for member in ranker._network.members if isinstance(member, LinearNetwork)]
    if len(networks) != len(ranker._network.members):
        return None
    weights = [network.output.weight.detach()[0].double().cpu().numpy() for network in networks]
    return np.mean(weights, axis=0), ranker._inputs.scaling
