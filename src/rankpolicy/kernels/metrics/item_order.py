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
    ranking[:depth] = np.argsort(-scores, kind="mergesort")[:depth]


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
