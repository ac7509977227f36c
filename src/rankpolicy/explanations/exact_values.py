"""Exact Shapley values: of boosted trees (interventional TreeSHAP, Lundberg et al. 2020) and of linear models."""

from __future__ import annotations

import math
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arrays import to_numpy
from rankpolicy.data.scaling import SCALINGS, FeatureScaling

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker


_ZERO = 1e-35  # LightGBM takes smaller numbers for 0


class Split(NamedTuple):
    """An inner node of a tree."""

    feature: int
    threshold: float  # values up to this go left; unused for categories
    categories: frozenset[int] | None  # that go left; None for numbers
    missing: str  # which values count as missing: "None", "Zero" or "NaN"
    missing_left: bool
    gain: float
    left: Split | float
    right: Split | float

    def goes_left(self, value: float) -> bool:
        """Whether an item with this value of the feature goes left, as LightGBM decides it."""
        if self.categories is not None:
            return not math.isnan(value) and int(value) in self.categories
        if math.isnan(value) and self.missing != "NaN":
            value = 0.0
        if (self.missing == "Zero" and abs(value) <= _ZERO) or (self.missing == "NaN" and math.isnan(value)):
            return self.missing_left
        return value <= self.threshold


def trees_of(booster: Any, *, num_trees: int) -> list[Split | float]:
    """The roots of the first trees of a LightGBM booster."""
    dumped = booster.dump_model(num_iteration=num_trees)["tree_info"]
    return [_node(tree["tree_structure"]) for tree in dumped]


def tree_values(
    trees: list[Split | float], item: NDArray[np.float32], references: NDArray[np.float32]
) -> NDArray[np.float64]:
    """The Shapley value of each feature (feature,) in the sum of trees, averaged over references.

    In the game of one reference, an item has the features of the coalition from ``item`` and the others from the reference. It reaches a
    leaf if the a features on the way whose value must be the item's are in the coalition, and the b features whose value must be the
    reference's are not. A leaf of value w therefore gives w (a-1)! b! / (a+b)! to each of the former and takes w a! (b-1)! / (a+b)! from
    each of the latter.
    """
    values = [0.0] * len(item)
    item_values = item.astype(np.float64).tolist()
    for row in references.astype(np.float64).tolist():
        for tree in trees:
            _add_leaves(tree, item_values, row, (), (), values)
    return np.array(values) / len(references)


def _add_leaves(
    node: Split | float,
    item_values: list[float],
    reference: list[float],
    inside: tuple[int, ...],
    outside: tuple[int, ...],
    values: list[float],
) -> None:
    """Add what the leaves below a node give, where ``taken`` must be in the coalition and ``left_out`` must not."""
    while isinstance(node, Split):
        feature = node.feature
        if feature in inside:
            node = node.left if node.goes_left(item_values[feature]) else node.right
        elif feature in outside:
            node = node.left if node.goes_left(reference[feature]) else node.right
        else:
            item_left, reference_left = node.goes_left(item_values[feature]), node.goes_left(reference[feature])
            if item_left != reference_left:
                below = node.left if reference_left else node.right
                _add_leaves(below, item_values, reference, inside, (*outside, feature), values)
                inside = (*inside, feature)
            node = node.left if item_left else node.right
    a, b = len(inside), len(outside)
    for feature in inside:
        values[feature] += node / (a * comb(a + b, a))
    for feature in outside:
        values[feature] -= node / (b * comb(a + b, b))


def _node(dumped: dict[str, Any]) -> Split | float:
    if "split_index" not in dumped:
        return float(dumped["leaf_value"])
    is_category = dumped["decision_type"] == "=="
    return Split(
        feature=dumped["split_feature"],
        threshold=math.nan if is_category else float(dumped["threshold"]),
        categories=frozenset(map(int, dumped["threshold"].split("||"))) if is_category else None,
        missing=dumped["missing_type"],
        missing_left=dumped["default_left"],
        gain=float(dumped["split_gain"]),
        left=_node(dumped["left_child"]),
        right=_node(dumped["right_child"]),
    )


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
    from rankpolicy.models.linear_networks import LinearNetworks
    from rankpolicy.rankers.linear.base import LinearRanker
    from rankpolicy.rankers.networks.network import NetworkRanker

    if isinstance(ranker, LinearRanker):
        return ranker._weights.astype(np.float64), ranker._scaling
    if not isinstance(ranker, NetworkRanker) or not isinstance(ranker._inputs, FeatureInputs):
        return None
    if isinstance(ranker._network, LinearNetworks):
        return ranker._network.matrix[:, :-1].astype(np.float64).mean(axis=0), ranker._inputs.scaling
    from rankpolicy.models.average import linear_layers

    networks = [linear_layers(member) for member in ranker._network.members]
    if any(layers is None or len(layers) != 1 for layers in networks):
        return None
    weights = [to_numpy(layer.weight)[0].astype(np.float64) for ((layer, _),) in filter(None, networks)]
    return np.mean(weights, axis=0), ranker._inputs.scaling
