"""A reward along a line in score space, for all queries at once: what coordinate ascent asks for thousands of times.

Column s of ``values`` is what ``evaluation.evaluate_scores`` gives for ``scores + steps[s] * direction``. This is faster than asking it for
each step: the labels of a query are read once, and each sort starts from the order of the step before, which rising steps change little.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.metrics.values import new_query_statistics, ranking_value


@njit(parallel=True)
def rewards_along_line(
    scores,  # (items,) float64
    direction,  # (items,) float64
    steps,  # (step,) float64, rising
    labels,  # (items,) float32
    offsets,  # (queries + 1,) int64
    kinds,
    cutoffs,
    weights,
    gain_is_linear,
    relevant_from,
    max_label,
    empty_value,
    discounts,
    values,  # (query, step) float64, filled
):
    num_queries = len(offsets) - 1
    deepest = cutoffs.max()
    for query in prange(num_queries):
        first, last = offsets[query], offsets[query + 1]
        n = last - first
        gains, relevant, stops, divisors = new_query_statistics(
            labels[first:last], kinds, cutoffs, gain_is_linear, relevant_from, max_label, discounts
        )
        ranking = np.arange(n)
        keys = np.empty(n)  # scores in the order of the ranking
        for s in range(len(steps)):
            for p in range(n):
                item = first + ranking[p]
                keys[p] = scores[item] + steps[s] * direction[item]
            order_changed = _sort_again(keys, ranking)
            if order_changed or s == 0:
                values[query, s] = ranking_value(
                    kinds,
                    cutoffs,
                    weights,
                    divisors,
                    empty_value,
                    ranking,
                    min(n, deepest),
                    gains,
                    relevant,
                    stops,
                    discounts,
                )
            else:
                values[query, s] = values[query, s - 1]


@njit()
def _sort_again(keys, ranking):
    """Sort a nearly sorted ranking by insertion, falling keys, equal keys in item order; whether it changed."""
    order_changed = False
    for p in range(1, len(keys)):
        key, item = keys[p], ranking[p]
        q = p
        while q > 0 and (keys[q - 1] < key or (keys[q - 1] == key and ranking[q - 1] > item)):
            keys[q], ranking[q] = keys[q - 1], ranking[q - 1]
            q -= 1
        if q < p:
            keys[q], ranking[q] = key, item
            order_changed = True
    return order_changed
