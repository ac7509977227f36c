"""A weighted sum of scaled features in an ONNX graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankpolicy.rankers.exporting.graph import Graph


def add_weighted_sum(graph: Graph, features: str, weights: NDArray[np.float64]) -> str:
    """Scores (row, 1) of scaled features, in float64 as the ranker computes them."""
    return graph.add("MatMul", graph.cast(features, np.float64), weights.astype(np.float64)[:, None])
