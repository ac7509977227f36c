"""Metrics of rankings in which items are tied: the mean over all orders of the items that have equal scores.

Within a group of m tied items every order is equally likely (McSherry & Najork 2008), so that a metric needs only what the group holds:
its mean gain, its number of relevant items, or the means of products of its stopping probabilities. ``metrics/ties.py`` is the
specification.
"""

from __future__ import annotations

import numpy as np

from rankpolicy.kernels.codes import AP, AVG_RANK, DCG, ERR, NDCG, RR, SUCCESS
from rankpolicy.kernels.compile import njit


@njit()
def num_in_tied_groups(scores, ranking, depth):
    """Number of items ranked as high as any of the first ``depth``, if some of these are tied; 0 if none is."""
    is_tied = False
    last = scores[ranking[0]]
    for p in range(1, depth):
        score = scores[ranking[p]]
        is_tied |= score == last
        last = score
    count = depth
    if depth < len(scores):
        count = 0
        for i in range(len(scores)):
            count += scores[i] >= last
    return count if is_tied or count > depth else 0


@njit()
def tied_term_value(t, terms, statistics, keys, ranking, num_ranked):  # noqa: C901 (one branch per metric)
    """Value of term ``t``; ``keys`` are the scores of the items in ``ranking``, whose first ``num_ranked`` end with a whole group."""
    kind, divisor = terms.kinds[t], statistics.divisors[t]
    if divisor == 0.0:
        return terms.empty_value * 0.0 if kind == DCG else terms.empty_value  # 0 or NaN for DCG
    depth = min(num_ranked, terms.cutoffs[t])
    total = divisor * (depth + 1.0) if kind == AVG_RANK else 0.0
    hits = 0.0  # relevant items above the group
    reaching = 1.0  # ERR's probability that the user reaches the group
    start = 0
    while start < depth:
        end = start + 1
        while end < num_ranked and keys[end] == keys[start]:
            end += 1
        size = float(end - start)
        num_counted = min(end, depth) - start
        if kind in (DCG, NDCG):
            gain = 0.0
            for p in range(start, end):
                gain += statistics.gains[ranking[p]]
            for p in range(start, start + num_counted):
                total += gain / size * terms.discounts[p]
        elif kind == ERR:
            total += reaching * _stopping_value(statistics.stops, ranking, start, end, num_counted)
            for p in range(start, end):
                reaching *= 1.0 - statistics.stops[ranking[p]]
        else:
            relevant = 0.0
            for p in range(start, end):
                relevant += statistics.relevant[ranking[p]]
            if kind == AP:
                other_hits = (relevant - 1.0) / (size - 1.0) if size > 1.0 else 0.0
                for j in range(num_counted):
                    total += relevant / size * (hits + 1.0 + j * other_hits) / (start + j + 1.0)
                hits += relevant
            elif kind in (RR, SUCCESS):
                if relevant > 0.0:
                    none_above = 1.0
                    for j in range(num_counted):
                        stops_first = none_above * relevant / (size - j)
                        total += stops_first if kind == SUCCESS else stops_first / (start + j + 1.0)
                        none_above = max(0.0, none_above - stops_first)
                        if size - j - 1.0 < relevant:
                            break
                    return total
            elif kind == AVG_RANK:
                for p in range(start, start + num_counted):
                    total += relevant / size * (p - depth)
            else:
                total += relevant / size * num_counted
        start = end
    return total / divisor


@njit()
def _stopping_value(stops, ranking, start, end, num_counted):
    """Sum over the group's ranks r of 1/r times the probability that the user, who reaches the group, stops at r.

    That probability is e_j - e_{j+1}, with e_j the mean over all sets of j items of the product of 1 - stop.
    """
    means = np.zeros(num_counted + 1)
    means[0] = 1.0
    for p in range(start, end):
        size = p - start + 1.0
        continues = 1.0 - stops[ranking[p]]
        for j in range(min(num_counted, p - start + 1), 0, -1):
            means[j] = ((size - j) * means[j] + j * continues * means[j - 1]) / size
    total = 0.0
    for j in range(num_counted):
        total += (means[j] - means[j + 1]) / (start + j + 1.0)
    return total
