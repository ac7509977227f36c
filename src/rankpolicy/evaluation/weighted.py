"""Weighted mean over queries."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def mean_over_queries(values: NDArray[np.float64], query_weights: NDArray[np.float64] | None) -> float:
    """sum of weight * value / sum of weights over the queries whose value is not NaN; NaN where there are none.

    Parameters
    ----------
    values
        One value per query (query,).
    query_weights
        Weight of each query (query,); None for the plain mean.

    >>> mean_over_queries(np.array([1.0, 0.5, np.nan]), np.array([3.0, 1.0, 9.0]))
    0.875
    """
    counted = ~np.isnan(values)
    if query_weights is None:
        return float(values[counted].mean()) if counted.any() else math.nan
    total = float(query_weights[counted].sum())
    return float(query_weights[counted] @ values[counted]) / total if total else math.nan
