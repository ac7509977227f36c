"""Compiled metrics of one query and of all queries of a dataset; the torch functions in metrics/ are the specification.

Labels above ``max_label`` must be refused by the caller where ERR occurs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.codes import AP, AVG_RANK, DCG, ERR, NDCG, NO_CUTOFF, RR, SUCCESS, P
from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.metrics.item_order import rank_items
from rankpolicy.kernels.metrics.ties import num_in_tied_groups, tied_term_value
from rankpolicy.types import Conventions

_NUM_GRADES = 32  # labels 0, 1, ..., 31 are sorted by counting
_BLOCK_QUERIES = 32  # queries that share one set of buffers


class MetricTerms(NamedTuple):
    """The metrics of a weighted sum and the conventions they are computed with; made by ``metric_terms``."""

    kinds: NDArray[np.int64]  # (term,) codes above
    cutoffs: NDArray[np.int64]  # (term,) NO_CUTOFF where every position counts
    weights: NDArray[np.float64]  # (term,)
    gain_is_linear: bool
    relevant_from: float
    max_label: float
    empty_value: float  # 0, 1 or NaN
    discounts: NDArray[np.float64]  # (position,) 1 / log2(1 + rank), as long as the longest list


class QueryStatistics(NamedTuple):
    """What the labels of one query contribute to its metrics."""

    gains: NDArray[np.float64]  # (item,)
    relevant: NDArray[np.uint8]  # (item,)
    stops: NDArray[np.float64]  # (item,) ERR's probability that the user stops here
    divisors: NDArray[np.float64]  # (term,) 0 marks a query that is empty for that term


def metric_terms(
    kinds: NDArray[np.int64],
    cutoffs: NDArray[np.int64],
    weights: NDArray[np.float64],
    *,
    conventions: Conventions,
    num_positions: int,
) -> MetricTerms:
    """The argument that kernels take, for lists of up to ``num_positions`` items."""
    return MetricTerms(
        kinds,
        cutoffs,
        weights,
        conventions.gain == "linear",
        float(conventions.relevant_from),
        float(conventions.max_label),
        math.nan if conventions.empty == "skip" else float(conventions.empty),
        rank_discounts(num_positions),
    )


def rank_discounts(num_positions: int) -> NDArray[np.float64]:
    """1 / log2(1 + rank) for ranks 1 to num_positions."""
    discounts: NDArray[np.float64] = 1.0 / np.log2(np.arange(2, num_positions + 2, dtype=np.float64))
    return discounts


@njit()
def new_statistics(num_items, num_terms):
    """Room for the statistics of a query of up to ``num_items`` items."""
    return QueryStatistics(np.empty(num_items), np.empty(num_items, np.uint8), np.empty(num_items), np.empty(num_terms))


@njit()
def query_statistics(labels, terms):
    """The statistics of the query with these labels, in new arrays."""
    statistics = new_statistics(len(labels), len(terms.kinds))
    fill_statistics(labels, terms, statistics)
    return statistics


@njit()
def fill_statistics(labels, terms, statistics):
    """Fill ``statistics``, whose arrays may be longer than the query."""
    n = len(labels)
    gains, relevant, stops, divisors = statistics
    scale = 2.0**-terms.max_label
    counts = np.zeros(_NUM_GRADES, np.int64)
    num_relevant = 0
    highest = 0.0
    are_grades = True
    for i in range(n):
        label = labels[i]
        grade = int(label)
        if grade == label and grade < _NUM_GRADES:
            counts[grade] += 1
            exp2_gain = float(1 << grade) - 1.0
        else:
            are_grades = False
            exp2_gain = 2.0 ** float(label) - 1.0
        gains[i] = label if terms.gain_is_linear else exp2_gain
        stops[i] = exp2_gain * scale
        is_relevant = label >= terms.relevant_from
        relevant[i] = is_relevant
        num_relevant += is_relevant
        highest = max(highest, label)
    best = np.empty(0, np.float64)
    if not are_grades:
        best = np.sort(gains[:n])[::-1]
    for t in range(len(terms.kinds)):
        kind, cutoff = terms.kinds[t], terms.cutoffs[t]
        if kind == NDCG:
            divisors[t] = _ideal_dcg(counts, best, min(cutoff, n), terms)
        elif kind in (DCG, ERR):
            divisors[t] = 1.0 if highest > 0.0 else 0.0
        elif num_relevant == 0:
            divisors[t] = 0.0
        elif kind in (RR, SUCCESS):
            divisors[t] = 1.0
        elif kind == P:
            divisors[t] = n if cutoff == NO_CUTOFF else cutoff
        else:
            divisors[t] = num_relevant


@njit()
def _ideal_dcg(counts, best, depth, terms):
    """DCG of the best order: from the counts of grades, or from sorted gains where labels are not small whole numbers."""
    discounts = terms.discounts
    total = 0.0
    if len(best) > 0:
        for p in range(depth):
            total += best[p] * discounts[p]
        return total
    p = 0
    for grade in range(_NUM_GRADES - 1, 0, -1):
        gain = float(grade) if terms.gain_is_linear else float(1 << grade) - 1.0
        end = min(depth, p + counts[grade])
        while p < end:
            total += gain * discounts[p]
            p += 1
    return total


@njit()
def fill_values(terms, statistics, rankings, depth, values):
    """Fill ``values`` (ranking, term) for rankings whose first ``depth`` entries are items of the query; fewer than all are a prefix."""
    # Arrays are taken out of their tuples once: each time counts references, which costs as much as a short list.
    kinds, cutoffs, discounts, empty_value = terms.kinds, terms.cutoffs, terms.discounts, terms.empty_value
    gains, relevant, stops, divisors = statistics
    for r in range(len(values)):
        ranking = rankings[r]
        for t in range(len(kinds)):
            if divisors[t] == 0.0:
                values[r, t] = empty_value * 0.0 if kinds[t] == DCG else empty_value  # 0 or NaN for DCG
            else:
                reach = min(depth, cutoffs[t])
                values[r, t] = _value(kinds[t], divisors[t], ranking, reach, gains, relevant, stops, discounts)


@njit()
def _value(kind, divisor, ranking, depth, gains, relevant, stops, discounts):  # noqa: C901 (one branch per metric)
    """The value of one metric."""
    total = 0.0
    if kind in (DCG, NDCG):
        for p in range(depth):
            total += gains[ranking[p]] * discounts[p]
    elif kind == AP:
        hits = 0
        for p in range(depth):
            if relevant[ranking[p]]:
                hits += 1
                total += hits / (p + 1.0)
    elif kind == ERR:
        reaching = 1.0
        for p in range(depth):
            stop = stops[ranking[p]]
            total += reaching * stop / (p + 1.0)
            reaching *= 1.0 - stop
    elif kind in (RR, SUCCESS):
        for p in range(depth):
            if relevant[ranking[p]]:
                return 1.0 if kind == SUCCESS else 1.0 / (p + 1.0)
    elif kind == AVG_RANK:
        total = divisor * (depth + 1.0)
        for p in range(depth):
            if relevant[ranking[p]]:
                total += p - depth
    else:
        for p in range(depth):
            total += relevant[ranking[p]]
    return total / divisor


@njit()
def weighted_sum(terms, values):
    """The weighted sum of the values (term,)."""
    total = 0.0
    for t in range(len(values)):
        total += terms.weights[t] * values[t]
    return total


def evaluate_queries(
    scores: NDArray[np.float64], labels: NDArray[Any], offsets: NDArray[np.int64], *, terms: MetricTerms
) -> NDArray[np.float64]:
    """Values (query, term) of the rankings by flat scores (items,), in expectation over ties.

    ``offsets`` (queries + 1,) say where queries start.
    """
    values = np.empty((len(offsets) - 1, len(terms.kinds)))
    num_blocks = (len(values) + _BLOCK_QUERIES - 1) // _BLOCK_QUERIES
    _evaluate(scores, labels, offsets, terms, values, num_tasks=num_blocks, nanoseconds=10 * scores.size)
    return values


@njit(parallel=True, nogil=True)
def _evaluate(scores, labels, offsets, terms, values):
    num_queries = len(values)
    for block in prange((num_queries + _BLOCK_QUERIES - 1) // _BLOCK_QUERIES):
        first = block * _BLOCK_QUERIES
        _evaluate_block(first, min(first + _BLOCK_QUERIES, num_queries), scores, labels, offsets, terms, values)


@njit()
def _evaluate_block(first, last, scores, labels, offsets, terms, values):
    num_terms, longest = values.shape[1], len(terms.discounts)
    deepest = terms.cutoffs.max()
    statistics, rankings = new_statistics(longest, num_terms), np.empty((1, longest), np.int64)
    keys = np.empty(longest)
    for query in range(first, last):
        start, end = offsets[query], offsets[query + 1]
        depth = min(end - start, deepest)
        fill_statistics(labels[start:end], terms, statistics)
        rank_items(scores[start:end], depth, rankings[0])
        num_ranked = num_in_tied_groups(scores[start:end], rankings[0], depth)
        if num_ranked == 0:
            fill_values(terms, statistics, rankings, depth, values[query : query + 1])
            continue
        if num_ranked > depth:
            rank_items(scores[start:end], num_ranked, rankings[0])
        for p in range(num_ranked):
            keys[p] = scores[start + rankings[0, p]]
        for t in range(num_terms):
            values[query, t] = tied_term_value(t, terms, statistics, keys, rankings[0], num_ranked)
