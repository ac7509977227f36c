"""Exact draws of the first positions of a Plackett-Luce ranking.

Drawing items with replacement, with probability proportional to their rates exp(log weight), and keeping each item's first occurrence, is
Plackett-Luce. An alias table (Walker 1977, Vose 1991) makes such a draw in constant time, so the top of a long list costs little. Once the
items placed hold most of the mass, most draws are repeats; from there on the rest run a race: item i arrives after an exponential time of
rate exp(log weight), and the order of arrival is Plackett-Luce too. Weights spread so widely that rates would vanish race in log space.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit
from rankpolicy.kernels.metrics.item_order import rank_items
from rankpolicy.kernels.plackett_luce.random_stream import exponential, uniform

# exp(-500) is far above the smallest float64, so rates, their sums and the inverses of these keep their precision.
_WIDEST_LINEAR_SPREAD = 500.0
# A draw repeats a placed item with this probability at most before the race takes over.
_MOST_MASS_PLACED = 0.7


class Draws(NamedTuple):
    """The log weights of one query's items and what drawing rankings by them needs; made by ``new_draws``."""

    log_weights: NDArray[np.float64]  # (item,)
    rates: NDArray[np.float64]  # (item,) exp(log weight - highest log weight)
    is_linear: bool  # whether no rate vanishes; else all arithmetic is on log weights
    keep: NDArray[np.float64]  # (cell,) alias table: cell i holds item i with this probability, item alias[i] otherwise
    alias: NDArray[np.int64]  # (cell,)
    keys: NDArray[np.float64]  # (item,) scratch; after a race in log space, the noisy log weights
    rest: NDArray[np.int64]  # (item,) scratch


@njit()
def gather(values, items):
    """values[items] in float64."""
    gathered = np.empty(len(items))
    for i in range(len(items)):
        gathered[i] = values[items[i]]
    return gathered


@njit()
def new_draws(log_weights):
    """Prepare to draw rankings of the items with these log weights."""
    n = len(log_weights)
    rates, keep, keys = np.empty(n), np.empty(n), np.empty(n)
    alias, rest = np.empty(n, np.int64), np.empty(n, np.int64)
    highest = log_weights.max()
    for i in range(n):
        rates[i] = math.exp(log_weights[i] - highest)
    is_linear = highest - log_weights.min() < _WIDEST_LINEAR_SPREAD
    if is_linear:
        _fill_alias_table(rates, keep, alias, rest)
    return Draws(log_weights, rates, is_linear, keep, alias, keys, rest)


@njit()
def _fill_alias_table(rates, keep, alias, todo):
    """All cells are equally likely; ``todo`` is scratch."""
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
def draw_ranking(state, draws, placed, ranking):
    """Fill ``ranking`` with the first items of a draw and mark them in ``placed`` (item,); returns the random state."""
    log_weights, rates, is_linear, keep, alias, keys, rest = draws
    n, depth = len(rates), len(ranking)
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
            # Keys descend with the time of arrival: its inverse, or minus its logarithm.
            keys[num_left] = rates[i] / draw if is_linear else log_weights[i] - math.log(draw)
            rest[num_left] = i
            num_left += 1
    rank_items(keys[:num_left], depth - num_placed, ranking[num_placed:])
    for p in range(num_placed, depth):
        ranking[p] = rest[ranking[p]]
        placed[ranking[p]] = True
    return state


@njit(fastmath={"reassoc", "contract"})
def fill_remaining(rates, placed, ranking, remaining):
    """remaining[p]: the summed rates of the items not placed before position p."""
    mass = 0.0
    # Without branches: which items are placed is random, so a processor cannot predict them.
    for i in range(len(rates)):
        mass += 0.0 if placed[i] else rates[i]
    for p in range(len(ranking) - 1, -1, -1):
        mass += rates[ranking[p]]
        remaining[p] = mass


@njit()
def fill_log_remaining(log_weights, placed, ranking, log_remaining):
    """The logarithm of the same, for weights that cannot share a scale."""
    log_mass = -np.inf
    for i in range(len(log_weights)):
        if not placed[i]:
            log_mass = np.logaddexp(log_mass, log_weights[i])
    for p in range(len(ranking) - 1, -1, -1):
        log_mass = np.logaddexp(log_mass, log_weights[ranking[p]])
        log_remaining[p] = log_mass
