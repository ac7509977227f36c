"""A weighted sum of scaled features in an ONNX graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankpolicy.rankers.exporting.graph import Graph


def add_weighted_sum(graph: Graph, features: str, weights: NDArray[np.float64]) -> str:
    """Scores (row, 1) of scaled features, in float64 as the ranker computes them."""
    return graph.add("MatMul", graph.cast(features, np.float64), weights.astype(np.float64)[:, None])


def add_linear(graph: Graph, features: str, weights: NDArray[np.float32]) -> str:
    """Scores (row, 1) of scaled features in float32; the last of the weights (column + 1,) is the bias."""
    return graph.add("Gemm", features, weights[:-1, None].astype(np.float32), weights[-1:].astype(np.float32))
