"""A reward along a line in score space, for all queries at once: what coordinate ascent asks for thousands of times.

Column s of the values is what ``evaluation.evaluate_scores`` gives for ``scores + steps[s] * direction``. One call for all steps is faster:
the labels of a query are read once, and each sort starts from the order of the step before, which changes little from step to step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.metrics.values import MetricTerms, query_statistics, ranking_value


def rewards_along_line(
    scores: NDArray[np.float64],
    direction: NDArray[np.float64],
    steps: NDArray[np.float64],
    *,
    labels: NDArray[Any],
    offsets: NDArray[np.int64],
    terms: MetricTerms,
) -> NDArray[np.float64]:
    """Rewards (query, step) for ascending ``steps`` (step,); the other arrays are flat (items,), ``offsets`` (queries + 1,)."""
    values = np.empty((len(offsets) - 1, len(steps)))
    _rewards_along_line(
        scores,
        direction,
        steps,
        labels,
        offsets,
        terms,
        values,
        num_tasks=len(values),
        nanoseconds=4 * scores.size * steps.size,
    )
    return values


@njit(parallel=True)
def _rewards_along_line(scores, direction, steps, labels, offsets, terms, values):
    num_queries = len(offsets) - 1
    deepest = terms.cutoffs.max()
    for query in prange(num_queries):
        first, last = offsets[query], offsets[query + 1]
        n = last - first
        statistics = query_statistics(labels[first:last], terms)
        ranking = np.arange(n)
        keys = np.empty(n)  # scores in the order of the ranking
        for s in range(len(steps)):
            for p in range(n):
                item = first + ranking[p]
                keys[p] = scores[item] + steps[s] * direction[item]
            order_changed = _sort_again(keys, ranking)
            if order_changed or s == 0:
                values[query, s] = ranking_value(terms, statistics, ranking, min(n, deepest))
            else:
                values[query, s] = values[query, s - 1]


@njit()
def _sort_again(keys, ranking):
    """Sort a nearly sorted ranking by insertion, descending keys, equal keys in item order; whether it changed."""
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
