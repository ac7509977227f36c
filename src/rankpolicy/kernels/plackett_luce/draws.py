"""Exact draws of the first positions of a Plackett-Luce ranking.

Drawing items with replacement, with probability proportional to their rates exp(score), and keeping each item's first occurrence, is
Plackett-Luce. An alias table (Walker 1977, Vose 1991) makes such a draw in constant time, so the top of a long list costs little. Once the
items placed hold most of the mass, repeats abound; from there on the rest run a race: item i arrives after an exponential time of rate
exp(s_i), and the order of arrival is Plackett-Luce too. Scores spread so widely that exp(s - max) would vanish race in log space.
"""

import math

from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.metrics.values import rank_items
from rankpolicy.kernels.plackett_luce.random_stream import exponential, uniform

# exp(-500) is far above the smallest float64, so rates, their sums and the inverses of these keep their precision.
_WIDEST_LINEAR_SPREAD = 500.0
# A draw repeats a placed item with this probability at most before the race takes over.
_MOST_MASS_PLACED = 0.7


@njit()
def fill_rates(scores, rates):
    """exp(score - highest score), and whether none of them vanishes."""
    highest = scores.max()
    for i in range(len(scores)):
        rates[i] = math.exp(scores[i] - highest)
    return highest - scores.min() < _WIDEST_LINEAR_SPREAD


@njit()
def fill_alias_table(rates, keep, alias, todo):
    """Cell i holds item i with probability keep[i], item alias[i] otherwise; all cells are equally likely. ``todo`` is scratch."""
    n = len(rates)
    scale = n / rates.sum()
    small, large = 0, n  # todo[:small] are cells to be filled up, todo[large:] items with mass to give
    for i in range(n):
        keep[i] = rates[i] * scale
        alias[i] = i
        if keep[i] < 1.0:
            todo[small] = i
            small += 1
        else:
            large -= 1
            todo[large] = i
    while small > 0 and large < n:
        small -= 1
        cell, giver = todo[small], todo[large]
        alias[cell] = giver
        keep[giver] -= 1.0 - keep[cell]
        if keep[giver] < 1.0:
            large += 1
            todo[small] = giver
            small += 1


@njit()
def draw_ranking(state, scores, rates, is_linear, keep, alias, placed, keys, rest, ranking):
    """Fill ``ranking`` with the first items of a draw and mark them in ``placed``; returns the random state. keys and rest are scratch."""
    n, depth = len(scores), len(ranking)
    placed[:] = False
    num_placed = 0
    if is_linear:
        enough = _MOST_MASS_PLACED * rates.sum()
        mass = 0.0
        while num_placed < depth and mass < enough:
            state, draw = uniform(state)
            cell = int(draw * n)
            item = cell if draw * n - cell < keep[cell] else alias[cell]
            if not placed[item]:
                placed[item] = True
                ranking[num_placed] = item
                num_placed += 1
                mass += rates[item]
    if num_placed == depth:
        return state
    num_left = 0
    for i in range(n):
        if not placed[i]:
            state, draw = exponential(state)
            # Keys fall with the time of arrival: its inverse, or minus its logarithm.
            keys[num_left] = rates[i] / draw if is_linear else scores[i] - math.log(draw)
            rest[num_left] = i
            num_left += 1
    rank_items(keys[:num_left], depth - num_placed, ranking[num_placed:])
    for p in range(num_placed, depth):
        ranking[p] = rest[ranking[p]]
        placed[ranking[p]] = True
    return state
