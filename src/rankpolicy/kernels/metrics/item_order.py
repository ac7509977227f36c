"""The items of one query by descending score: the sort that every compiled ranking uses, fast for short and long lists."""

import numpy as np

from rankpolicy.kernels.compile import njit


@njit()
def rank_items(scores, depth, ranking):
    """Fill ``ranking`` with the first ``depth`` items by descending score; equal scores stay in item order."""
    n = len(scores)
    if n <= 32 or depth <= 16 or 8 * depth <= n:
        _select_items(scores, depth, ranking)
        return
    items = np.arange(n)
    if n <= 256:
        _bucket_items(scores, items)
    else:
        _radix_sort_items(scores, items)
    # Items are now nearly sorted, with equal scores in item order; insertion does the rest.
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
    """Insertion into the best ``depth`` items so far; most items are refused after one comparison with the last of them."""
    num_ranked = 0
    last = -np.inf
    for i in range(len(scores)):
        score = scores[i]
        if num_ranked < depth:
            num_ranked += 1
        elif score <= last:
            continue
        p = num_ranked - 1
        while p > 0 and scores[ranking[p - 1]] < score:
            ranking[p] = ranking[p - 1]
            p -= 1
        ranking[p] = i
        last = scores[ranking[num_ranked - 1]]


@njit()
def _bucket_items(scores, items):
    """Sort items into 256 equally wide buckets of descending score."""
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
        # Ascending keys are descending scores: all bits but the sign are flipped where the score is not negative.
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
