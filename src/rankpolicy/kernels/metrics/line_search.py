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
from rankpolicy.kernels.metrics.ties import tied_term_value
from rankpolicy.kernels.metrics.values import MetricTerms, fill_values, query_statistics, weighted_sum


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
    deepest = terms.cutoffs.max()
    for query in prange(len(values)):
        items = slice(offsets[query], offsets[query + 1])
        _rewards_of_query(scores[items], direction[items], steps, labels[items], terms, deepest, values[query])


@njit()
def _rewards_of_query(scores, direction, steps, labels, terms, deepest, values):
    n = len(scores)
    statistics = query_statistics(labels, terms)
    depth = min(n, deepest)
    ranking, of_terms = np.arange(n), np.empty((1, len(terms.kinds)))
    rankings = ranking.reshape((1, n))  # the same memory
    had_ties = True
    keys = np.empty(n)  # scores in the order of the ranking
    for s in range(len(steps)):
        for p in range(n):
            item = ranking[p]
            keys[p] = scores[item] + steps[s] * direction[item]
        order_changed = _sort_again(keys, ranking)
        has_ties = _has_ties(keys, depth)
        if has_ties:
            values[s] = _tied_value(terms, statistics, keys, ranking, n)
        elif order_changed or had_ties:
            fill_values(terms, statistics, rankings, depth, of_terms)
            values[s] = weighted_sum(terms, of_terms[0])
        else:
            values[s] = values[s - 1]
        had_ties = has_ties


@njit()
def _has_ties(keys, depth):
    """Whether one of the first ``depth`` keys, which are sorted, equals the next key."""
    has_ties = False
    for p in range(1, min(depth + 1, len(keys))):
        has_ties |= keys[p] == keys[p - 1]
    return has_ties


@njit()
def _tied_value(terms, statistics, keys, ranking, num_ranked):
    """The weighted sum of all terms, in expectation over ties."""
    total = 0.0
    for t in range(len(terms.kinds)):
        total += terms.weights[t] * tied_term_value(t, terms, statistics, keys, ranking, num_ranked)
    return total


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
