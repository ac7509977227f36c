"""A tree grown on codes, and the text by which LightGBM knows such trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rankpolicy.kernels.trees import Split

_ABOVE_ALL = 1e300
_MISSING_IS_NAN, _MISSING_GOES_LEFT = 8, 2  # bits of LightGBM's decision_type


class GrownTree:
    """A tree, split by split. As in LightGBM the left part of a leaf keeps its number, and the right one has the next free number.

    Parameters
    ----------
    values
        The value of each code in each feature (features, codes), ascending, NaN where a code does not occur.
    learning_rate
        Factor on the values of leaves.
    l2
        Penalty on them.
    """

    def __init__(self, values: NDArray[np.float32], learning_rate: float, l2: float) -> None:
        self._values, self._rate, self._l2 = values, learning_rate, l2
        self._features: list[int] = []
        self._codes: list[int] = []
        self._thresholds: list[float] = []
        self._missing_left: list[bool] = []
        self._gains: list[float] = []
        self._children: list[list[int]] = []  # left and right of each node; a leaf is -1 - its number
        self._inner: list[tuple[float, float, int]] = []  # value, Hessian, number of items of each node
        self._leaves: list[tuple[float, float, int]] = []
        self._num_codes = 0

    @property
    def num_leaves(self) -> int:
        """How many leaves it has."""
        return len(self._leaves)

    @property
    def leaf_values(self) -> NDArray[np.float64]:
        """What the tree adds to the score of the items of each leaf (leaves,)."""
        return np.array([value for value, *_ in self._leaves])

    def start(self, gradient: float, hessian: float, num_items: int) -> None:
        """Put all items in one leaf.

        Parameters
        ----------
        gradient, hessian, num_items
            Sums over the items, and their number.
        """
        self._leaves.append((self._value(gradient, hessian), hessian, num_items))

    def split(
        self,
        leaf: int,
        feature: int,
        split: Split,
        parts: dict[int, tuple[float, float]],
        counts: dict[int, int],
        *,
        num_codes: int,
    ) -> None:
        """Split a leaf in two.

        Parameters
        ----------
        leaf
            Its number.
        feature
            The feature by which it is split.
        split
            The split.
        parts, counts
            Sums of gradient and Hessian, and the number of items, of both parts by their numbers.
        num_codes
            How many codes values can have.
        """
        node, right = len(self._features), len(self._leaves)
        for children in self._children:
            for side in (0, 1):
                if children[side] == -1 - leaf:
                    children[side] = node
        self._features.append(feature)
        self._codes.append(split.code)
        self._thresholds.append(_threshold(self._values[feature, :num_codes], split.code))
        self._missing_left.append(split.missing_left)
        self._gains.append(split.gain)
        self._children.append([-1 - leaf, -1 - right])
        self._inner.append(self._leaves[leaf])
        self._leaves.append(self._leaves[leaf])
        self._num_codes = num_codes
        for number, (gradient, hessian) in parts.items():
            self._leaves[number] = (self._value(gradient, hessian), hessian, counts[number])

    def raised_by(self, constant: float) -> GrownTree:
        """The same tree with a constant added to all of its values, as LightGBM's first tree holds the score before it.

        Parameters
        ----------
        constant
            The constant.
        """
        self._leaves = [(value + constant, *rest) for value, *rest in self._leaves]  # type: ignore[misc]
        self._inner = [(value + constant, *rest) for value, *rest in self._inner]  # type: ignore[misc]
        return self

    def nodes(self) -> NDArray[np.int64]:
        """All nodes as ``kernels.trees.follow_tree`` reads them (node, 6)."""
        rows = [
            [feature, code, self._num_codes, int(missing_left), *children]
            for feature, code, missing_left, children in zip(
                self._features, self._codes, self._missing_left, self._children, strict=True
            )
        ]
        return np.array(rows, np.int64).reshape(-1, 6)

    def text(self, number: int) -> str:
        """The tree in LightGBM's words.

        Parameters
        ----------
        number
            Its number among the trees of a ranker.
        """
        decisions = [_MISSING_IS_NAN + _MISSING_GOES_LEFT * left for left in self._missing_left]
        fields: dict[str, Sequence[Any]] = {
            "num_leaves": [self.num_leaves],
            "num_cat": [0],
            "split_feature": self._features,
            "split_gain": self._gains,
            "threshold": self._thresholds,
            "decision_type": decisions,
            "left_child": [left for left, _ in self._children],
            "right_child": [right for _, right in self._children],
            "leaf_value": [value for value, *_ in self._leaves],
            "leaf_weight": [hessian for _, hessian, _ in self._leaves],
            "leaf_count": [count for *_, count in self._leaves],
            "internal_value": [value for value, *_ in self._inner],
            "internal_weight": [hessian for _, hessian, _ in self._inner],
            "internal_count": [count for *_, count in self._inner],
            "is_linear": [0],
            "shrinkage": [self._rate],
        }
        lines = [f"{name}={' '.join(map(_word, values))}" for name, values in fields.items()]
        return "\n".join([f"Tree={number}", *lines, "", "", ""])

    def _value(self, gradient: float, hessian: float) -> float:
        total = hessian + self._l2
        return 0.0 if total <= 0 else -self._rate * gradient / total


def model_text(trees: Sequence[GrownTree], values: NDArray[np.float32]) -> str:
    """The text of a ranker's trees, as LightGBM reads it.

    Parameters
    ----------
    trees
        The trees.
    values
        The value of each code in each feature (features, codes).
    """
    num_features = len(values)
    texts = [tree.text(number) for number, tree in enumerate(trees)]
    ranges = []
    for row in values:
        known = row[~np.isnan(row)]
        ranges.append(f"[{_word(float(known.min()))}:{_word(float(known.max()))}]" if len(known) else "none")
    header = {
        "version": "v4",
        "num_class": "1",
        "num_tree_per_iteration": "1",
        "label_index": "0",
        "max_feature_idx": str(num_features - 1),
        "feature_names": " ".join(f"Column_{column}" for column in range(num_features)),
        "feature_infos": " ".join(ranges),
        "tree_sizes": " ".join(str(len(text.encode())) for text in texts),
    }
    head = "\n".join(["tree", *(f"{name}={value}" for name, value in header.items()), "", ""])
    return f"{head}{''.join(texts)}end of trees\n"


def _threshold(values: NDArray[np.float32], code: int) -> float:
    """Halfway between the value of a code and the next one that occurs; above all values where only missing values go right."""
    above = values[code + 1 :]
    known = above[~np.isnan(above)]
    below = values[: code + 1]
    last = float(below[~np.isnan(below)][-1])
    return (last + float(known[0])) / 2 if len(known) else _ABOVE_ALL


def _word(value: Any) -> str:
    return repr(float(value)) if isinstance(value, float | np.floating) else str(int(value))
