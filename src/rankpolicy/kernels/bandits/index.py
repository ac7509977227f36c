"""Ranking by an index: every item gets a number from its clicks and observations, and the items of the largest numbers are shown.

An index is two functions in plain Python (formula.py): ``threshold(time, settings)`` is computed once per list, and
``value(clicks, observations, threshold, settings, generator)`` once per item. Equal indices come in random order.
"""

from functools import cache

import numpy as np

from rankpolicy.kernels.bandits.formula import code_fingerprint, formula
from rankpolicy.kernels.bandits.kl_ucb import kl_ucb_index
from rankpolicy.kernels.bandits.memory import CLICKS, OBSERVATIONS
from rankpolicy.kernels.bandits.step import compiled, rank_step


@compiled
def current_time(memory):
    """Number of lists that count by now, including the next one; a window or a discount limits it."""
    time = memory.steps[0] + 1.0
    if len(memory.window_rankings) > 0:
        time = min(time, float(len(memory.window_rankings)))
    if memory.discount < 1.0:
        time = (1.0 - memory.discount**time) / (1.0 - memory.discount)
    return time


@compiled
def place_of_largest(values, generator):
    """Where the largest value stands; one of the equal largest at random."""
    best, num_equal = 0, 0
    for i in range(len(values)):
        if num_equal == 0 or values[i] > values[best]:
            best, num_equal = i, 1
        elif values[i] == values[best]:
            num_equal += 1
            if generator.random() * num_equal < 1.0:
                best = i
    return best


@compiled
def place_largest(indices, available, generator, ranking):
    """Fill ranking with the available items of the largest indices, largest first, equal ones at random; overwrites indices."""
    for position in range(len(ranking)):
        best = place_of_largest(indices, generator)
        ranking[position] = available[best]
        indices[best] = -np.inf


@compiled
def place_by_index(memory, indices, available, generator, ranking):
    """Place the items of the largest indices, the largest first or, with ``best_last``, last."""
    place_largest(indices, available, generator, ranking)
    if memory.best_last:
        for position in range(len(ranking) // 2):
            mirrored = len(ranking) - 1 - position
            ranking[position], ranking[mirrored] = ranking[mirrored], ranking[position]


@compiled
def remove_item(items, num_items, item):
    """Put the last of the first num_items in the item's place; returns how many are left."""
    for i in range(num_items):
        if items[i] == item:
            items[i] = items[num_items - 1]
            return num_items - 1
    return num_items


def named_by_formulas(function, fingerprint):
    """The function with the fingerprint of its formulas in its name.

    Numba's symbols are the name of a function and a number that every process counts from 1. Steps of two indices that were compiled
    by different processes could have the same symbol; a third process that loads both from the file cache would run one for the other.
    """
    function.__name__ = f"{function.__name__}_{fingerprint}"
    function.__qualname__ = f"{function.__qualname__}_{fingerprint}"
    return function


@cache
def rank_items_by(threshold, value):
    """The rank step of an index. Statistics (1, item, 2): clicks and observations of each item."""
    # Part of the compiled code, so that numba's file cache, which knows formulas by name only, notices when they change.
    fingerprint = code_fingerprint(formula(threshold), formula(value))

    def rank_by_index(memory, available, generator, ranking):
        if fingerprint < 0:
            return
        limit = threshold(current_time(memory), memory.settings)
        indices = np.empty(len(available))
        for i in range(len(available)):
            clicks = memory.statistics[0, available[i], CLICKS]
            observations = memory.statistics[0, available[i], OBSERVATIONS]
            indices[i] = value(clicks, observations, limit, memory.settings, generator)
        place_by_index(memory, indices, available, generator, ranking)

    return rank_step(named_by_formulas(rank_by_index, fingerprint))


@cache
def rank_positions_by(threshold, value):
    """The rank step of an index per position. Statistics (position, item, 2): each position shows its best item not placed above it."""
    fingerprint = code_fingerprint(formula(threshold), formula(value))

    def rank_by_position(memory, available, generator, ranking):
        if fingerprint < 0:
            return
        limit = threshold(current_time(memory), memory.settings)
        left, num_left = available.copy(), len(available)
        indices = np.empty(num_left)
        for position in range(len(ranking)):
            for i in range(num_left):
                clicks = memory.statistics[position, left[i], CLICKS]
                observations = memory.statistics[position, left[i], OBSERVATIONS]
                indices[i] = value(clicks, observations, limit, memory.settings, generator)
            ranking[position] = left[place_of_largest(indices[:num_left], generator)]
            num_left = remove_item(left, num_left, ranking[position])

    return rank_step(named_by_formulas(rank_by_position, fingerprint))


@compiled
def fill_kl_ucb(means, divergences, indices):
    """The KL-UCB index of each pair, into indices."""
    for i in range(len(means)):
        indices[i] = kl_ucb_index(means[i], divergences[i])
