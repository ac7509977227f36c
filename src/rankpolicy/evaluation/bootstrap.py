"""Percentile bootstrap of a mean over queries."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankpolicy.types import RankPolicyError

_DRAWS_OF_A_BLOCK = 1 << 21


def bootstrap_interval(
    values: NDArray[np.float64],
    *,
    query_weights: NDArray[np.float64] | None = None,
    level: float = 0.95,
    num_resamples: int = 2000,
    random_state: int = 0,
) -> tuple[float, float]:
    """Percentile interval of the mean of values (query,), NaN left out (Efron & Tibshirani 1993, chapter 13).

    Queries are drawn with replacement ``num_resamples`` times, each with its weight where there are weights (query,); the interval holds
    the middle ``level`` of the means. Queries of weight 0 do not count.

    >>> bootstrap_interval(np.array([0.5, 0.5, 0.5]))
    (0.5, 0.5)
    """
    if not 0 < level < 1:
        raise RankPolicyError(f"level must lie between 0 and 1, such as 0.95; got {level:g}.")
    if num_resamples < 1:
        raise RankPolicyError(f"num_resamples must be 1 or more; got {num_resamples}.")
    is_counted = ~np.isnan(values) & (True if query_weights is None else query_weights > 0)
    counted = values[is_counted]
    weights = None if query_weights is None else query_weights[is_counted]
    if len(counted) == 0:
        return math.nan, math.nan
    generator = np.random.default_rng(random_state)
    means = np.empty(num_resamples)
    resamples_of_a_block = max(1, _DRAWS_OF_A_BLOCK // len(counted))
    for first in range(0, num_resamples, resamples_of_a_block):
        size = min(resamples_of_a_block, num_resamples - first)
        drawn = generator.integers(len(counted), size=(size, len(counted)), dtype=np.int32)
        if weights is None:
            means[first : first + size] = counted[drawn].mean(axis=1)
        else:
            drawn_weights = weights[drawn]
            means[first : first + size] = (drawn_weights * counted[drawn]).sum(1) / drawn_weights.sum(1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
