"""Growing trees on codes of one byte: histograms, splits, and gradients of LambdaRank; rankers/trees/streamed.py puts them together."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit

NUM_CODES = 256
_CHUNK = 40  # features that one thread adds up: each feature is added up in the order of rows, whatever the number of threads
_TINY = 1e-15


class Split(NamedTuple):
    """Where a leaf is best cut in two."""

    gain: float
    feature: int
    code: int  # the highest code that goes left
    missing_left: bool
    gradient: float  # of the items that go left
    hessian: float


def drawn_rows(leaves: NDArray[np.uint8], *, leaf: int, seed: int, share: float, first: int) -> NDArray[np.int64]:
    """The items of a leaf that are drawn at random, each by its own number: the same ones in any order of blocks.

    Parameters
    ----------
    leaves
        The leaf of each item of a block (items,).
    leaf
        Which leaf.
    seed
        Seed of this draw.
    share
        Probability of each item.
    first
        Number of the first item of the block.
    """
    rows = np.empty(len(leaves), np.int64)
    return rows[: _draw(leaves, leaf, np.uint64(seed), share, first, rows)]


@njit(nogil=True)
def _draw(leaves, leaf, seed, share, first, rows):
    count = 0
    for k in range(len(leaves)):
        if leaves[k] != leaf:
            continue
        # splitmix64 (Steele, Lea & Flood 2014)
        x = seed + np.uint64(first + k + 1) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
        if float(x >> np.uint64(11)) * (1.0 / 9007199254740992.0) < share:
            rows[count] = k
            count += 1
    return count


def cut_leaf(
    codes: NDArray[np.uint8],
    leaves: NDArray[np.uint8],
    leaf: int,
    right: int,
    column: int,
    code: int,
    missing: int,
    missing_left: bool,
) -> None:
    """Move the items of a leaf that go right to their own leaf.

    Parameters
    ----------
    codes
        Stored codes (items, stored columns).
    leaves
        The leaf of each item (items,), changed in place.
    leaf, right
        The leaf, and the number of its right part.
    column, code, missing, missing_left
        The stored column, the highest code that goes left, the code of a missing value, and whether that goes left.
    """
    _cut(codes, leaves, leaf, right, column, code, missing, missing_left)


@njit(nogil=True)
def _cut(codes, leaves, leaf, right, column, code, missing, missing_left):
    for row in range(len(leaves)):
        if leaves[row] == leaf:
            own = codes[row, column]
            goes_left = missing_left if own >= missing else own <= code
            if not goes_left:
                leaves[row] = right


def add_histogram(
    codes: NDArray[np.uint8],
    rows: NDArray[np.int64],
    gradient: NDArray[np.float32],
    hessian: NDArray[np.float32],
    columns: NDArray[np.int64],
    histogram: NDArray[np.float64],
) -> None:
    """Add gradient and Hessian of some items to the codes that they have.

    Parameters
    ----------
    codes
        Stored codes (items, stored columns).
    rows
        Which items.
    gradient, hessian
        One value per item (items,).
    columns
        The stored column of each feature (features,).
    histogram
        Sums of gradient and Hessian (features, codes, 2), changed in place.
    """
    num_chunks = (len(columns) + _CHUNK - 1) // _CHUNK
    _add(codes, rows, gradient, hessian, columns, histogram, num_tasks=num_chunks, nanoseconds=2 * len(rows) * len(columns))  # fmt: skip


@njit(parallel=True, nogil=True)
def _add(codes, rows, gradient, hessian, columns, histogram):
    num_features = len(columns)
    for chunk in prange((num_features + _CHUNK - 1) // _CHUNK):
        last = min(num_features, (chunk + 1) * _CHUNK)
        for k in range(len(rows)):
            row = rows[k]
            g, h = np.float64(gradient[row]), np.float64(hessian[row])
            for feature in range(chunk * _CHUNK, last):
                code = codes[row, columns[feature]]
                histogram[feature, code, 0] += g
                histogram[feature, code, 1] += h


def best_split(
    histogram: NDArray[np.float64],
    features: NDArray[np.int64],
    num_codes: int,
    *,
    gradient: float,
    hessian: float,
    num_items: float,
    min_items: int,
    min_hessian: float,
    l2: float,
) -> Split:
    """The cut of a leaf with the highest gain, GL² / (HL + l2) + GR² / (HR + l2) - G² / (H + l2); gain 0 where none is allowed.

    As in LightGBM, the number of items on one side is estimated by its share of the Hessian.

    Parameters
    ----------
    histogram
        Sums of gradient and Hessian (features, codes, 2).
    features
        Which features may be cut (chosen,).
    num_codes
        How many codes values can have; the next is that of a missing value.
    gradient, hessian, num_items
        Sums over the leaf, and its number of items.
    min_items, min_hessian
        What each side must have at least.
    l2
        Penalty on the values of leaves.
    """
    gain, feature, code, missing_left, left, left_hessian = _best(
        histogram, features, num_codes, gradient, hessian, num_items, min_items, min_hessian, l2
    )
    return Split(gain, int(feature), int(code), bool(missing_left), left, left_hessian)


@njit(nogil=True)
def _best(histogram, features, num_codes, gradient, hessian, num_items, min_items, min_hessian, l2):
    per_hessian = num_items / max(hessian, _TINY)
    whole = gradient * gradient / (hessian + l2 + _TINY)
    best, best_feature, best_code, best_missing, best_g, best_h = 0.0, -1, 0, False, 0.0, 0.0
    for feature in features:
        missing_g, missing_h = histogram[feature, num_codes, 0], histogram[feature, num_codes, 1]
        has_missing = missing_h > 0.0 or missing_g != 0.0
        for side in range(2 if has_missing else 1):  # missing values go right, then left
            g, h = (missing_g, missing_h) if side == 1 else (0.0, 0.0)
            for code in range(num_codes):
                own_h = histogram[feature, code, 1]
                g += histogram[feature, code, 0]
                h += own_h
                if own_h == 0.0 and code < num_codes - 1:
                    continue
                other_h = hessian - h
                if h * per_hessian < min_items or h < min_hessian:
                    continue
                if other_h * per_hessian < min_items or other_h < min_hessian:
                    break
                other_g = gradient - g
                gain = g * g / (h + l2 + _TINY) + other_g * other_g / (other_h + l2 + _TINY) - whole
                if gain > best + 1e-12:
                    best, best_feature, best_code, best_missing = gain, feature, code, side == 1
                    best_g, best_h = g, h
    return best, best_feature, best_code, best_missing, best_g, best_h


def lambda_gradients(
    scores: NDArray[np.float32],
    labels: NDArray[Any],
    offsets: NDArray[np.int64],
    weights: NDArray[np.float64],
    gradient: NDArray[np.float32],
    hessian: NDArray[np.float32],
    *,
    truncation: int,
) -> None:
    """Gradient and Hessian of LambdaRank, as LightGBM normalises them.

    For each pair with label_i > label_j, at least one of them among the first ``truncation``: with d = |ΔNDCG| / (0.01 + |s_i - s_j|) and
    p = 1 / (1 + exp(s_i - s_j)) the gradient of i is -d p, that of j d p, and both have the Hessian d p (1 - p). The sums of a query are
    scaled by log2(1 + S) / S, S = 2 sum of d p. Without the division by 0.01 + |s_i - s_j| where all scores are equal.

    Parameters
    ----------
    scores, labels
        One value per item (items,).
    offsets
        Where queries start (queries + 1,).
    weights
        Weight of each query (queries,).
    gradient, hessian
        Where the results go (items,).
    truncation
        See above.
    """
    longest = int(np.diff(offsets).max())
    discounts = 1 / np.log2(2 + np.arange(longest, dtype=np.float64))
    _lambdas(
        scores, labels, offsets, weights, gradient, hessian, truncation, discounts,
        num_tasks=len(offsets) - 1, nanoseconds=3000 * (len(offsets) - 1),
    )  # fmt: skip


@njit(parallel=True, nogil=True)
def _lambdas(scores, labels, offsets, weights, gradient, hessian, truncation, discounts):
    for query in prange(len(offsets) - 1):
        first, last = offsets[query], offsets[query + 1]
        _of_query(
            scores[first:last], labels[first:last], gradient[first:last], hessian[first:last], truncation, discounts, weights[query]
        )  # fmt: skip


@njit(nogil=True)
def _of_query(scores, labels, gradient, hessian, truncation, discounts, weight):
    size = len(scores)
    gradient[:] = 0
    hessian[:] = 0
    order = np.argsort(-scores, kind="mergesort")
    gains = np.empty(size)
    for k in range(size):
        gains[k] = 2.0 ** float(labels[k]) - 1.0
    highest = np.sort(gains)[::-1]
    ideal = 0.0
    for place in range(min(size, truncation)):
        ideal += highest[place] * discounts[place]
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
            apart = float(scores[high]) - float(scores[low])
            change = (gains[high] - gains[low]) * (discounts[i] - discounts[j]) / ideal
            if is_spread:
                change /= 0.01 + abs(apart)
            chance = 1.0 / (1.0 + math.exp(min(apart, 500.0)))
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


def follow_tree(
    codes: NDArray[np.uint8], columns: NDArray[Any], nodes: NDArray[np.int64], leaves: NDArray[np.uint8]
) -> None:
    """The leaf of each item, from the root of a tree.

    Parameters
    ----------
    codes
        Stored codes (items, stored columns).
    columns
        The stored column of each feature (features,).
    nodes
        For each node its feature, the highest code that goes left, the code of missing values, whether these go left, left child, right
        child (node, 6); a child below 0 is the leaf -1 - child.
    leaves
        Where the result goes (items,).
    """
    _follow(codes, columns, nodes, leaves)


@njit(nogil=True)
def _follow(codes, columns, nodes, leaves):
    for row in range(len(leaves)):
        node = 0 if len(nodes) else -1
        while node >= 0:
            own = codes[row, columns[nodes[node, 0]]]
            goes_left = nodes[node, 3] == 1 if own >= nodes[node, 2] else own <= nodes[node, 1]
            node = nodes[node, 4] if goes_left else nodes[node, 5]
        leaves[row] = -1 - node
