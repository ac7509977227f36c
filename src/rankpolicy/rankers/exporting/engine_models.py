"""What search engines can compute, taken from a fitted ranker: trees that compare a number with a threshold, or relu layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.scaling import FeatureScaling
from rankpolicy.rankers.exporting.trees import tree_arrays
from rankpolicy.types import RankPolicyError

Node = TypeVar("Node")
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """A regression tree. Nodes are numbered: inner ones from 0, the root, then the leaves; a child has a higher number than its parent."""

    feature: NDArray[np.int64]  # (inner node,)
    threshold: NDArray[np.float64]  # (inner node,), a value goes left where it is at most this
    missing_left: NDArray[np.bool_]  # (inner node,), whether a missing value goes left
    left: NDArray[np.int64]  # (inner node,)
    right: NDArray[np.int64]  # (inner node,)
    leaves: NDArray[np.float64]  # (leaf,)

    @property
    def missing_is_zero(self) -> bool:
        """Whether every split sends a missing value where it sends 0."""
        return bool((self.missing_left == (self.threshold >= 0)).all())

    def nested(self, split: Callable[[int, Node, Node], Node], leaf: Callable[[int, float], Node]) -> Node:
        """The root, built from the leaves up: ``split`` makes an inner node of its number and children, ``leaf`` a leaf of its value."""
        num_inner = len(self.feature)
        nodes: dict[int, Node] = {num_inner + i: leaf(num_inner + i, float(v)) for i, v in enumerate(self.leaves)}
        for node in reversed(range(num_inner)):
            nodes[node] = split(node, nodes.pop(int(self.left[node])), nodes.pop(int(self.right[node])))
        return nodes[0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trees:
    """An ensemble whose score is the sum of its leaves; at least one tree."""

    trees: Sequence[Tree]

    @classmethod
    def of(cls, text: str, names: Sequence[str]) -> Trees:
        """The trees of a checked model text of LightGBM."""
        trees = []
        for arrays in tree_arrays(text, _ComparedColumns(names)):
            inner = ~arrays["is_leaf"]
            trees.append(
                Tree(
                    feature=arrays["column"][inner],
                    threshold=arrays["threshold"][inner],
                    missing_left=arrays["missing_left"][inner].astype(bool),
                    left=arrays["left"][inner],
                    right=arrays["right"][inner],
                    leaves=arrays["weight"][~inner],
                )
            )
        none = np.zeros(0, np.int64)
        constant = Tree(
            feature=none, threshold=np.zeros(0), missing_left=none > 0, left=none, right=none, leaves=np.zeros(1)
        )
        return cls(trees=trees or [constant])

    @property
    def missing_is_zero(self) -> bool:
        """Whether a missing value counts as 0."""
        return all(tree.missing_is_zero for tree in self.trees)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layers:
    """A network: (x - center) / spread, then layers with relu between them; one layer is a linear model."""

    center: Floats  # (feature,); also what a missing value counts as
    spread: Floats  # (feature,), infinite for a feature that does not count
    layers: Sequence[tuple[Floats, Floats]]  # weights (output, input) and biases (output,) of each layer

    @classmethod
    def of_weights(
        cls, scaling: FeatureScaling, weights: NDArray[np.float64], *, method: str, bias: float = 0.0
    ) -> Layers:
        """A weighted sum of scaled features."""
        return cls(**_affine(scaling, len(weights), method), layers=[(weights[None], np.array([bias]))])

    @classmethod
    def of_networks(cls, scaling: FeatureScaling, networks: Sequence[Any], num_features: int, method: str) -> Layers:
        """The mean of networks as one: their hidden layers side by side."""
        import torch

        from rankpolicy.models.average import linears_by_layer

        by_layer = linears_by_layer(networks)
        if by_layer is None:
            raise _not_plain(method, "its network is more than linear layers with relu between them")
        layers: list[tuple[Floats, Floats]] = []
        for number, of_layer in enumerate(by_layer):
            weights = [linear.weight.detach().cpu() for linear, _ in of_layer]
            biases = [linear.bias.detach().cpu() for linear, _ in of_layer]
            # All members read the features; a further layer of a member reads that member only.
            joined = torch.cat(weights) if number == 0 else torch.block_diag(*weights)
            layers.append((joined.numpy(), torch.cat(biases).numpy()))
        weights_of_last, bias = layers[-1]
        layers[-1] = (weights_of_last.mean(0, keepdims=True), bias.mean(keepdims=True))
        return cls(**_affine(scaling, num_features, method), layers=layers)


def _affine(scaling: FeatureScaling, num_features: int, method: str) -> dict[str, Floats]:
    """Center and spread (feature,), where the scaling is nothing more."""
    if scaling.encoding is not None:
        raise _not_plain(method, "it was trained with missing values or categories, which it reads as extra columns")
    if scaling.kind not in ("none", "standardize"):
        raise _not_plain(method, f"scaling={scaling.kind!r} is no shift and division")
    if scaling.center is None or scaling.spread is None:
        return {"center": np.zeros(num_features), "spread": np.ones(num_features)}
    return {"center": scaling.center, "spread": scaling.spread}


def trees_needed(reason: str) -> RankPolicyError:
    """The error for a ranker that an engine reads only when it has become trees."""
    return RankPolicyError(
        f"{reason}.",
        python="Make trees of the ranker first: rankpolicy.distil(ranker, data).",
        command_line="Make trees of the model first: rankpolicy distil MODEL --data DATA --out TREES.",
    )


def _not_plain(method: str, reason: str) -> RankPolicyError:
    return trees_needed(f"search engines compute plain networks; this {method} is none: {reason}")


class _ComparedColumns:
    """Refuses splits that are more than a comparison with a threshold."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def zero_as_missing(self, feature: int) -> int:
        raise RankPolicyError(
            f"feature {self._names[feature]!r} counts 0 as missing, which no engine does. Use format='onnx'."
        )

    def is_other(self, feature: int, words: tuple[int, ...]) -> int:
        raise RankPolicyError(
            f"feature {self._names[feature]!r} is split by category, which this engine cannot do: train on numbers, such as one column "
            "of 0 and 1 per category, or use the format onnx."
        )

    def note_threshold(self, feature: int, threshold: NDArray[np.float64]) -> None:
        """Nothing to remember."""


_LARGEST = np.finfo(np.float32).max


def at_most_32(thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
    """The float32 numbers t32 for which x <= t32 holds for the same float32 numbers x as x <= t; finite.

    >>> at_most_32(np.array([0.5, 0.1, np.inf])) <= np.array([0.5, 0.1, np.inf])
    array([ True,  True,  True])
    """
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(np.float32)
    lower = np.where(rounded > thresholds, np.nextafter(rounded, np.float32(-np.inf)), rounded)
    return np.clip(lower, -_LARGEST, _LARGEST)


def below_32(thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
    """The float32 numbers t32 for which x < t32 holds for the same float32 numbers x as x <= t; finite.

    >>> float(below_32(np.array([0.5]))[0]) > 0.5
    True
    """
    with np.errstate(over="ignore"):
        return np.minimum(np.nextafter(at_most_32(thresholds), np.float32(np.inf)), _LARGEST)
