"""LightGBM's trees as the ONNX-ML operator TreeEnsembleRegressor.

The operator compares a feature with a threshold and knows missing values. What else LightGBM's splits do is computed beforehand, as further
columns: one where zeros are missing, for splits that count zero as missing, and one of 0 and 1 per set of categories that a split asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankpolicy.rankers.exporting.graph import Graph
from rankpolicy.types import RankPolicyError

# The bits of LightGBM's decision_type.
_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_MISSING_TYPE_SHIFT, _ZERO_IS_MISSING, _NAN_IS_MISSING = 2, 1, 2
_ZERO = np.float32(1e-35)  # LightGBM takes numbers up to this size for zero
_RAW_OBJECTIVES = ("", "custom", "regression", "lambdarank", "rank_xendcg")  # scores are the sums of leaves


def add_trees(graph: Graph, text: str) -> str:
    """Scores (row, 1) of features that are not scaled, from a checked model text (``model_text.checked_model_text``)."""
    columns = _Columns(graph)
    ensemble_arrays = tree_arrays(text, columns)
    if not ensemble_arrays:
        zeros = graph.add("Mul", graph.cast(graph.add("IsNaN", graph.features), np.float32), np.float32(0))
        return graph.columns(zeros, np.array([0]))
    joined = {name: np.concatenate([arrays[name] for arrays in ensemble_arrays]) for name in ensemble_arrays[0]}
    weights, is_leaf = joined["weight"], joined["is_leaf"]
    return graph.add(
        "TreeEnsembleRegressor",
        graph.cast(columns.joined(), np.float64),
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=joined["tree"],
        nodes_nodeids=joined["node"],
        nodes_featureids=joined["column"],
        nodes_modes=np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_values_as_tensor=_tensor(joined["threshold"]),
        nodes_truenodeids=joined["left"],
        nodes_falsenodeids=joined["right"],
        nodes_missing_value_tracks_true=joined["missing_left"],
        target_treeids=joined["tree"][is_leaf],
        target_nodeids=joined["node"][is_leaf],
        target_ids=np.zeros(is_leaf.sum(), np.int64),
        target_weights_as_tensor=_tensor(weights[is_leaf]),
    )


class SplitColumns(Protocol):
    """Where splits read their values; what is more than a comparison with a threshold is computed as a further column, or refused."""

    def zero_as_missing(self, feature: int) -> int:
        """The column of a feature whose zeros are missing values."""
        ...

    def is_other(self, feature: int, words: tuple[int, ...]) -> int:
        """The column that is 0 where the category is among the bits of ``words``, else 1."""
        ...

    def note_threshold(self, feature: int, threshold: NDArray[np.float64]) -> None:
        """Remember where the score of a feature may jump."""
        ...


def tree_arrays(text: str, columns: SplitColumns) -> list[dict[str, NDArray[Any]]]:
    """Each tree of a checked model text as arrays over its nodes, inner ones first; a value goes left where it is <= the threshold."""
    header, *trees = (_fields(block) for block in text.split("end of trees")[0].split("\nTree="))
    objective = header.get("objective", "").split(" ")[0]
    if objective not in _RAW_OBJECTIVES or "sqrt" in header.get("objective", ""):
        raise RankPolicyError(
            f"trees of the objective {objective!r} cannot be exported: their scores are more than the sum of leaves. Use save(path)."
        )
    arrays = [_ensemble_part(tree, number, columns) for number, tree in enumerate(trees)]
    if "average_output" in header:
        arrays = [of_tree | {"weight": of_tree["weight"] / len(trees)} for of_tree in arrays]
    return arrays


class _Columns:
    """The columns that trees read: the features, then what is computed from them."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._names: list[str] = []
        self._places: dict[Any, int] = {}

    def zero_as_missing(self, feature: int) -> int:
        """The place of a feature whose zeros are missing values."""
        if feature not in self._places:
            values = self.graph.columns(self.graph.features, np.array([feature]))
            is_zero = self.graph.add("LessOrEqual", self.graph.add("Abs", values), _ZERO)
            self._place(feature, self.graph.add("Where", is_zero, np.float32(np.nan), values))
            self.graph.edges[feature].append(np.array([0, _ZERO, -_ZERO, 2 * _ZERO, -2 * _ZERO], np.float32))
        return self._places[feature]

    def is_other(self, feature: int, words: tuple[int, ...]) -> int:
        """The place of a column that is 0 where the category is among the bits of ``words``, else 1 (also where it is missing)."""
        if (feature, words) not in self._places:
            bits = np.unpackbits(np.array(words, "<u4").view(np.uint8), bitorder="little")
            is_other = np.concatenate([[1], 1 - bits.astype(np.float32), [1]]).astype(np.float32)
            values = self.graph.columns(self.graph.features, np.array([feature]))
            values = self.graph.add("Where", self.graph.add("IsNaN", values), np.float32(-1), values)
            values = self.graph.add("Clip", values, np.float32(-1), np.float32(len(bits)))
            # Cut off towards 0, as LightGBM does.
            codes = self.graph.add("Add", self.graph.cast(values, np.int64), np.int64(1))
            self._place((feature, words), self.graph.add("Gather", is_other, codes))
            self.graph.edges[feature].append(np.arange(-1, len(bits) + 1, dtype=np.float32))
        return self._places[feature, words]

    def note_threshold(self, feature: int, threshold: NDArray[np.float64]) -> None:
        """Check the finished file there."""
        self.graph.edges[feature].append(threshold)

    def _place(self, key: Any, name: str) -> None:
        self._places[key] = self.graph.num_features + len(self._names)
        self._names.append(name)

    def joined(self) -> str:
        """All columns (row, column)."""
        return (
            self.graph.add("Concat", self.graph.features, *self._names, axis=1) if self._names else self.graph.features
        )


def _ensemble_part(tree: Mapping[str, str], number: int, columns: SplitColumns) -> dict[str, NDArray[Any]]:
    """One tree as the operator's arrays: inner nodes 0, 1, ..., then leaves."""
    leaf_values = _numbers(tree["leaf_value"])
    num_leaves = len(leaf_values)
    num_nodes = num_leaves - 1
    inner = {"column": np.zeros(0, np.int64), "threshold": np.zeros(0), "left": np.zeros(0, np.int64)}
    inner |= {"right": inner["left"], "missing_left": inner["left"]}
    if num_nodes:
        inner = _inner_nodes(tree, columns)
    filled = {name: np.concatenate([values, np.zeros(num_leaves, values.dtype)]) for name, values in inner.items()}
    return filled | {
        "tree": np.full(num_nodes + num_leaves, number),
        "node": np.arange(num_nodes + num_leaves),
        "is_leaf": np.arange(num_nodes + num_leaves) >= num_nodes,
        "weight": np.concatenate([np.zeros(num_nodes), leaf_values]),
    }


def _inner_nodes(tree: Mapping[str, str], columns: SplitColumns) -> dict[str, NDArray[Any]]:
    thresholds, features, decisions = (
        _numbers(tree["threshold"]),
        _integers(tree["split_feature"]),
        _integers(tree["decision_type"]),
    )
    num_nodes = len(thresholds)
    columns_read, missing_left = features.copy(), np.zeros(num_nodes, np.int64)
    bounds, words = _integers(tree.get("cat_boundaries", "")), _integers(tree.get("cat_threshold", ""))
    for node, (feature, decision) in enumerate(zip(features.tolist(), decisions.tolist(), strict=True)):
        missing_type = decision >> _MISSING_TYPE_SHIFT
        if decision & _CATEGORICAL:
            start, stop = bounds[int(thresholds[node])], bounds[int(thresholds[node]) + 1]
            columns_read[node] = columns.is_other(feature, tuple(words[start:stop].tolist()))
            thresholds[node] = 0.5
            continue
        if missing_type == _ZERO_IS_MISSING:
            columns_read[node] = columns.zero_as_missing(feature)
        # Where nothing was missing in training, a missing value counts as 0.
        is_missing = missing_type in (_ZERO_IS_MISSING, _NAN_IS_MISSING)
        missing_left[node] = bool(decision & _DEFAULT_LEFT) if is_missing else thresholds[node] >= 0
        columns.note_threshold(feature, thresholds[[node]])
    # LightGBM reads a number of at most _ZERO as 0, so every such number goes the way of 0.
    thresholds = np.where((thresholds >= 0) & (thresholds < _ZERO), _ZERO, thresholds)
    thresholds = np.where((thresholds < 0) & (thresholds >= -_ZERO), np.nextafter(np.float64(-_ZERO), -1), thresholds)
    left_children, right = (_integers(tree[name]) for name in ("left_child", "right_child"))
    children = {"left": left_children, "right": right}
    # Leaves are -1, -2, ... in LightGBM's text.
    placed = {name: np.where(nodes < 0, num_nodes + ~nodes, nodes) for name, nodes in children.items()}
    return {"column": columns_read, "threshold": thresholds, "missing_left": missing_left, **placed}


def _tensor(values: NDArray[np.float64]) -> Any:
    import onnx.numpy_helper

    return onnx.numpy_helper.from_array(np.asarray(values, np.float64), "values")


def _fields(block: str) -> dict[str, str]:
    return {name: value for name, _, value in (line.partition("=") for line in block.split("\n"))}


def _numbers(text: str) -> NDArray[np.float64]:
    return np.array(text.split(), np.float64)


def _integers(text: str) -> NDArray[np.int64]:
    return np.array(text.split(), np.int64)
