"""Compiled metrics of one query and of all queries of a dataset; the torch functions in metrics/ are the specification.

Building blocks, for one query of n items; arrays to fill are given by the caller:

    query_statistics(labels[n] float, kinds[T] int64, cutoffs[T] int64, gain_is_linear bool, relevant_from, max_label,
                     discounts[>= n] float64,
                     gains[>= n] float64, relevant[>= n] uint8, stops[>= n] float64, divisors[T] float64)
        fills the last four; a divisor of 0 marks a query that is empty for that term.
    new_query_statistics(labels, kinds, cutoffs, gain_is_linear, relevant_from, max_label, discounts)
        -> gains, relevant, stops, divisors: the same in new arrays, for callers that look at a query once.
    term_value(kind, cutoff, divisor, empty_value, ranking[>= depth] int, depth, gains, relevant, stops, discounts)
        -> float64, value of the ranking whose first ``depth`` entries are items 0 .. n - 1 (a prefix if depth < n).
    ranking_value(kinds, cutoffs, weights, divisors, empty_value, ranking, depth, gains, relevant, stops, discounts)
        -> float64, the weighted sum of all terms.
    rank_items(scores[n] float64, depth, ranking[>= depth] int64)
        the first ``depth`` items by falling score, equal scores in item order.
    evaluate_queries(scores[items] float64, labels[items] float, offsets[queries + 1] int64, kinds, cutoffs,
                     gain_is_linear, relevant_from, max_label, empty_value, discounts[longest], values[queries, T])
        values of all terms for all queries, in parallel.

``discounts`` is ``rank_discounts(longest)``, 1 / log2(1 + rank); ``empty_value`` is 0.0, 1.0 or NaN. Kinds, cutoffs and
weights come from ``metrics.term_table``. Labels above max_label must be refused by the caller where ERR occurs.
"""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit

DCG, NDCG, AP, RR, P, RECALL, ERR, AVG_RANK, SUCCESS = range(9)

KINDS = {
    "dcg": DCG,
    "ndcg": NDCG,
    "ap": AP,
    "rr": RR,
    "p": P,
    "recall": RECALL,
    "err": ERR,
    "avg_rank": AVG_RANK,
    "success": SUCCESS,
}

NO_CUTOFF = 1 << 40

_NUM_GRADES = 32  # labels 0, 1, ..., 31 are sorted by counting
_QUERIES_OF_A_BLOCK = 32  # share one set of buffers


def rank_discounts(num_positions: int) -> NDArray[np.float64]:
    """1 / log2(1 + rank) for ranks 1 to num_positions."""
    discounts: NDArray[np.float64] = 1.0 / np.log2(np.arange(2, num_positions + 2, dtype=np.float64))
    return discounts


@njit()
def query_statistics(
    labels, kinds, cutoffs, gain_is_linear, relevant_from, max_label, discounts, gains, relevant, stops, divisors
):
    n = len(labels)
    scale = 2.0**-max_label
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
        gains[i] = label if gain_is_linear else exp2_gain
        stops[i] = exp2_gain * scale
        is_relevant = label >= relevant_from
        relevant[i] = is_relevant
        num_relevant += is_relevant
        highest = max(highest, label)
    best = np.empty(0, np.float64)
    if not are_grades:
        best = np.sort(gains[:n])[::-1]
    for t in range(len(kinds)):
        kind = kinds[t]
        if kind == NDCG:
            divisors[t] = _ideal_dcg(counts, best, min(cutoffs[t], n), gain_is_linear, discounts)
        elif kind in (DCG, ERR):
            divisors[t] = 1.0 if highest > 0.0 else 0.0
        elif num_relevant == 0:
            divisors[t] = 0.0
        elif kind in (RR, SUCCESS):
            divisors[t] = 1.0
        elif kind == P:
            divisors[t] = n if cutoffs[t] == NO_CUTOFF else cutoffs[t]
        else:
            divisors[t] = num_relevant


@njit()
def new_query_statistics(labels, kinds, cutoffs, gain_is_linear, relevant_from, max_label, discounts):
    n = len(labels)
    gains, relevant, stops, divisors = np.empty(n), np.empty(n, np.uint8), np.empty(n), np.empty(len(kinds))
    query_statistics(
        labels, kinds, cutoffs, gain_is_linear, relevant_from, max_label, discounts, gains, relevant, stops, divisors
    )
    return gains, relevant, stops, divisors


@njit()
def _ideal_dcg(counts, best, depth, gain_is_linear, discounts):
    """DCG of the best order: from counts of the grades, or from sorted gains where labels are no small grades."""
    total = 0.0
    if len(best) > 0:
        for p in range(depth):
            total += best[p] * discounts[p]
        return total
    p = 0
    for grade in range(_NUM_GRADES - 1, 0, -1):
        gain = float(grade) if gain_is_linear else float(1 << grade) - 1.0
        end = min(depth, p + counts[grade])
        while p < end:
            total += gain * discounts[p]
            p += 1
    return total


@njit()
def term_value(kind, cutoff, divisor, empty_value, ranking, depth, gains, relevant, stops, discounts):
    if divisor == 0.0:
        return empty_value * 0.0 if kind == DCG else empty_value  # 0 or NaN for DCG
    depth = min(depth, cutoff)
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
def ranking_value(kinds, cutoffs, weights, divisors, empty_value, ranking, depth, gains, relevant, stops, discounts):
    total = 0.0
    for t in range(len(kinds)):
        total += weights[t] * term_value(
            kinds[t], cutoffs[t], divisors[t], empty_value, ranking, depth, gains, relevant, stops, discounts
        )
    return total


@njit()
def rank_items(scores, depth, ranking):
    n = len(scores)
    if n <= 32 or depth <= 16 or 8 * depth <= n:
        _select_items(scores, depth, ranking)
        return
    items = np.arange(n)
    if n <= 256:
        _bucket_items(scores, items)
    else:
        _radix_sort_items(scores, items)
    # Both leave items in nearly the right order and equal scores in item order; an insertion pass does the rest.
    for p in range(1, n):
        item = items[p]
        score = scores[item]
        q = p
        while q > 0 and scores[items[q - 1]] < score:
            items[q] = items[q - 1]
            q -= 1
        items[q] = item
    ranking[:depth] = items[:depth]


@njit()
def _select_items(scores, depth, ranking):
    """Insertion into the best ``depth`` items so far: most items lose to the last of them at once."""
    kept = 0
    last = -np.inf
    for i in range(len(scores)):
        score = scores[i]
        if kept < depth:
            kept += 1
        elif score <= last:
            continue
        p = kept - 1
        while p > 0 and scores[ranking[p - 1]] < score:
            ranking[p] = ranking[p - 1]
            p -= 1
        ranking[p] = i
        last = scores[ranking[kept - 1]]


@njit()
def _bucket_items(scores, items):
    """Items into 256 buckets of falling score, equally wide; few enough items for insertion if they share a bucket."""
    lowest, highest = scores.min(), scores.max()
    scale = 255.0 / (highest - lowest)
    if not (0.0 < scale < np.inf):
        return
    starts = np.zeros(257, np.int32)
    buckets = np.empty(len(scores), np.int32)
    for i in range(len(scores)):
        bucket = np.int32((highest - scores[i]) * scale)
        buckets[i] = bucket
        starts[bucket + 1] += 1
    for b in range(256):
        starts[b + 1] += starts[b]
    for i in range(len(scores)):
        items[starts[buckets[i]]] = i
        starts[buckets[i]] += 1


@njit()
def _radix_sort_items(scores, items):
    """Radix sort by the bytes of the scores, rounded to float32."""
    n = len(scores)
    singles = np.empty(n, np.float32)
    for i in range(n):
        singles[i] = np.float32(scores[i]) + np.float32(0.0)  # -0.0 becomes 0.0
    keys = singles.view(np.uint32)
    counts = np.zeros((4, 256), np.int32)
    source, target = items, np.empty(n, np.int64)
    for i in range(n):
        # A key falls as its score rises: all bits but the sign are flipped where the score is not negative.
        if keys[i] >> np.uint32(31) == 0:
            keys[i] ^= np.uint32(0x7FFFFFFF)
        for byte in range(4):
            counts[byte, (keys[i] >> np.uint32(8 * byte)) & np.uint32(255)] += 1
    for byte in range(4):
        shift = np.uint32(8 * byte)
        starts = counts[byte]
        total = 0
        for value in range(256):
            total, starts[value] = total + starts[value], total
        for p in range(n):
            value = (keys[source[p]] >> shift) & np.uint32(255)
            target[starts[value]] = source[p]
            starts[value] += 1
        source, target = target, source


@njit(parallel=True)
def evaluate_queries(
    scores, labels, offsets, kinds, cutoffs, gain_is_linear, relevant_from, max_label, empty_value, discounts, values
):
    num_queries = len(offsets) - 1
    deepest = cutoffs.max()
    longest = len(discounts)
    for block in prange((num_queries + _QUERIES_OF_A_BLOCK - 1) // _QUERIES_OF_A_BLOCK):
        gains, stops = np.empty(longest, np.float64), np.empty(longest, np.float64)
        relevant = np.empty(longest, np.uint8)
        divisors = np.empty(len(kinds), np.float64)
        ranking = np.empty(longest, np.int64)
        first = block * _QUERIES_OF_A_BLOCK
        for query in range(first, min(first + _QUERIES_OF_A_BLOCK, num_queries)):
            start, end = offsets[query], offsets[query + 1]
            depth = min(end - start, deepest)
            query_statistics(
                labels[start:end],
                kinds,
                cutoffs,
                gain_is_linear,
                relevant_from,
                max_label,
                discounts,
                gains,
                relevant,
                stops,
                divisors,
            )
            rank_items(scores[start:end], depth, ranking)
            for t in range(len(kinds)):
                values[query, t] = term_value(
                    kinds[t], cutoffs[t], divisors[t], empty_value, ranking, depth, gains, relevant, stops, discounts
                )
