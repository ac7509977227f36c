"""Linear networks as arrays: scores and slopes without autograd, so that linear models learn and score without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arrays import Array, to_numpy
from rankpolicy.data.rows import NetworkRows, ScaledRows
from rankpolicy.display import short_repr

Floats = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class LinearNetworks:
    """Networks side by side, each with the scores w . x + b; their mean is the score of an item.

    ``matrix`` (network, column + 1) holds the weights of each network, its bias last.

    >>> networks = LinearNetworks(np.array([[1.0, 2.0, 0.5], [3.0, 2.0, 0.5]]))
    >>> networks.scores(np.array([[1.0, 1.0]]))
    array([4.5])
    >>> networks.gradient(np.ones((2, 1)), np.array([[5.0, 7.0]]))
    array([[5., 7., 1.],
           [5., 7., 1.]])
    """

    matrix: Floats

    __repr__ = short_repr

    @classmethod
    def drawn(
        cls, num_networks: int, num_columns: int, *, within: float | None, generator: np.random.Generator
    ) -> LinearNetworks:
        """New networks; weights and biases are uniform within ``within`` of 0, by default within 1 / sqrt(columns)."""
        bound = within or 1 / np.sqrt(max(1, num_columns))
        return cls(generator.uniform(-bound, bound, (num_networks, num_columns + 1)).astype(np.float32))

    @property
    def num_networks(self) -> int:
        """How many networks there are."""
        return len(self.matrix)

    @property
    def weights(self) -> Sequence[Floats]:
        """The arrays of weights, each (network, ...)."""
        return [self.matrix]

    @property
    def flat(self) -> Floats:
        """All weights in their memory (weight,)."""
        return self.matrix.reshape(-1)

    def member_scores(self, features: Floats) -> Floats:
        """Scores (network, item) of features (item, column)."""
        scores: Floats = self.matrix[:, :-1] @ features.T + self.matrix[:, -1:]
        return scores

    def gradient(self, slopes: Floats, features: Floats) -> Floats:
        """The gradient (network, column + 1) of a loss whose slopes in the scores are (network, item)."""
        return np.concatenate([slopes @ features, slopes.sum(1, keepdims=True)], 1)

    def scores(self, rows: NetworkRows) -> Floats:
        """The mean scores (item,) of features, or of rows that are scaled block by block."""
        mean = self.matrix.mean(0)
        blocks = rows.blocks() if isinstance(rows, ScaledRows) else [rows]
        return np.concatenate([block @ mean[:-1] + mean[-1] for block in blocks])

    def state_dict(self) -> dict[str, Floats]:
        """The weights by the names that a network of torch has for them."""
        arrays: dict[str, Floats] = {}
        for number, weights in enumerate(self.matrix.copy()):
            arrays |= {
                f"members.{number}.output.weight": weights[None, :-1],
                f"members.{number}.output.bias": weights[-1:],
            }
        return arrays

    def load_state_dict(self, weights: Mapping[str, Array]) -> None:
        """Take weights of these names, arrays or tensors."""
        for number, row in enumerate(self.matrix):
            row[:-1] = to_numpy(weights[f"members.{number}.output.weight"])[0]
            row[-1:] = to_numpy(weights[f"members.{number}.output.bias"])
