"""Gradients of LambdaRank for labels that LightGBM's own objective does not take."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit


def lambda_gradients(
    scores: NDArray[np.float64],
    labels: NDArray[Any],
    offsets: NDArray[np.int64],
    query_weights: NDArray[np.float64],
    *,
    truncation: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Gradient and Hessian (items,) of LambdaRank at flat scores (items,), as LightGBM normalises them.

    For each pair with label_i > label_j, at least one of them among the first ``truncation``: with d = |ΔNDCG| / (0.01 + |s_i - s_j|) and
    p = 1 / (1 + exp(s_i - s_j)) the gradient of i is -d p, that of j d p, and both have the Hessian d p (1 - p). The sums of a query are
    scaled by log2(1 + S) / S, S = 2 sum of d p. Without the division by 0.01 + |s_i - s_j| where all scores are equal.
    """
    gradient, hessian = np.zeros(len(scores), np.float32), np.zeros(len(scores), np.float32)
    longest = int(np.diff(offsets).max())
    discounts = 1 / np.log2(2 + np.arange(longest, dtype=np.float64))
    _add_all_queries(
        scores, labels, offsets, query_weights, gradient, hessian, truncation, discounts,
        num_tasks=len(offsets) - 1, nanoseconds=3000 * (len(offsets) - 1),
    )  # fmt: skip
    return gradient, hessian


@njit(parallel=True, nogil=True)
def _add_all_queries(scores, labels, offsets, query_weights, gradient, hessian, truncation, discounts):
    for query in prange(len(offsets) - 1):
        first, last = offsets[query], offsets[query + 1]
        _add_query(
            scores[first:last], labels[first:last], gradient[first:last], hessian[first:last], truncation, discounts, query_weights[query]
        )  # fmt: skip


@njit(nogil=True)
def _add_query(scores, labels, gradient, hessian, truncation, discounts, weight):
    size = len(scores)
    order = np.argsort(-scores, kind="mergesort")
    gains = np.empty(size)
    for k in range(size):
        gains[k] = 2.0 ** float(labels[k]) - 1.0
    highest = np.sort(gains)[::-1]
    ideal = 0.0
    for rank in range(min(size, truncation)):
        ideal += highest[rank] * discounts[rank]
    if ideal <= 0.0:
        return
    is_spread = scores[order[0]] != scores[order[-1]]
    total = 0.0
    g, h = np.zeros(size), np.zeros(size)
    for i in range(min(size - 1, truncation)):
        for j in range(i + 1, size):
            a, b = order[i], order[j]
            if labels[a] == labels[b]:
                continue
            high, low = (a, b) if labels[a] > labels[b] else (b, a)
            distance = float(scores[high]) - float(scores[low])
            change = (gains[high] - gains[low]) * (discounts[i] - discounts[j]) / ideal
            if is_spread:
                change /= 0.01 + abs(distance)
            chance = 1.0 / (1.0 + math.exp(min(distance, 500.0)))  # exp overflows float64 above 709
            pull, curve = change * chance, change * chance * (1.0 - chance)
            g[high] -= pull
            g[low] += pull
            h[high] += curve
            h[low] += curve
            total += 2 * pull
    if total > 0.0:
        scale = math.log2(1.0 + total) / total * weight
        for k in range(size):
            gradient[k], hessian[k] = g[k] * scale, h[k] * scale
