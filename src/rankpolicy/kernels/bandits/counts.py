"""Bandits that count clicks and observations: lists by an index of the counts, what clicks reveal, and which lists count.

**Index.** Every item gets a number from its clicks and observations, and the items of the largest numbers are shown. An index is two
functions in plain Python (formulas.py): ``threshold(time, settings)`` is computed once per list, and
``value(clicks, observations, threshold, settings, generator)`` once per item. Equal indices come in random order.

**Feedback.** Every bandit that knows which items were examined learns here:

    all-clicks    DCM: every item down to the last click was examined, and each click counts
    first-click   cascade: every item down to the first click was examined; later clicks are ignored
    last-click    every item down to the last click was examined, but only that click counts
    whole-list    multiple plays: every item shown was examined, and each click counts

Without a click the whole list was examined.

**Lists that count.** ``learn_log`` serves all bandits: steps are counted, and old lists are discounted or leave the window.
"""

from functools import cache

import numpy as np

from rankpolicy.kernels.bandits.formulas import code_fingerprint, formula, kl_ucb_index
from rankpolicy.kernels.bandits.memory import CLICKS, FIRST_CLICK, LAST_CLICK, OBSERVATIONS, WHOLE_LIST
from rankpolicy.kernels.bandits.step import compiled, learn_step, log_step, rank_step


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
def index_of_largest(values, generator):
    """Index of the largest value; one of the equal largest at random."""
    best, num_equal = 0, 0
    for i in range(len(values)):
        if num_equal == 0 or values[i] > values[best]:
            best, num_equal = i, 1
        elif values[i] == values[best]:
            num_equal += 1
            # The n-th equal value is taken with probability 1 / n, so that in the end all of them are equally likely.
            if generator.random() * num_equal < 1.0:
                best = i
    return best


@compiled
def place_largest(indices, available, generator, ranking):
    """Fill ranking with the available items of the largest indices, largest first, equal ones at random; overwrites indices."""
    for position in range(len(ranking)):
        best = index_of_largest(indices, generator)
        ranking[position] = available[best]
        indices[best] = -np.inf


@compiled
def place_in_order(order, ranking):
    """Move the k-th item of a list, best first, to the k-th position of the order; positions past the end of the list are left out."""
    best_first, k = ranking.copy(), 0
    for position in order:
        if position < len(ranking):
            ranking[position] = best_first[k]
            k += 1


@compiled
def place_by_index(memory, indices, available, generator, ranking):
    """Place the items of the largest indices: the k-th largest goes to the k-th of ``positions``."""
    place_largest(indices, available, generator, ranking)
    place_in_order(memory.positions, ranking)


@compiled
def remove_item(items, num_items, item):
    """Put the last of the first num_items where the item is; returns how many remain."""
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
def rank_items_by(threshold, value, arrange=place_by_index):
    """The rank step of an index. Table 0 of the statistics: clicks and observations of each item; ``arrange`` makes the list."""
    # Part of the compiled code, so that numba's file cache, which knows formulas by name only, notices when they change.
    fingerprint = code_fingerprint(formula(threshold), formula(value), getattr(arrange, "py_func", arrange))

    def rank_by_index(memory, available, generator, ranking):
        if fingerprint < 0:
            return
        limit = threshold(current_time(memory), memory.settings)
        indices = np.empty(len(available))
        for i in range(len(available)):
            clicks = memory.statistics[0, available[i], CLICKS]
            observations = memory.statistics[0, available[i], OBSERVATIONS]
            indices[i] = value(clicks, observations, limit, memory.settings, generator)
        arrange(memory, indices, available, generator, ranking)

    return rank_step(named_by_formulas(rank_by_index, fingerprint))


@compiled
def fill_kl_ucb(means, divergences, indices):
    """The KL-UCB index of each pair, into indices."""
    for i in range(len(means)):
        indices[i] = kl_ucb_index(means[i], divergences[i])


@compiled
def num_examined(memory, clicks):
    """How many positions of a list were examined for sure."""
    length = len(clicks)
    if memory.feedback == WHOLE_LIST:
        return length
    if memory.feedback == FIRST_CLICK:
        for position in range(length):
            if clicks[position] == 1:
                return position + 1
    else:
        for position in range(length - 1, -1, -1):
            if clicks[position] == 1:
                return position + 1
    return length


@compiled
def counted_click(memory, clicks, position, examined):
    """The click at an examined position, 0 where the bandit's feedback ignores it."""
    if memory.feedback == LAST_CLICK and position < examined - 1:
        return 0.0
    return float(clicks[position])


@compiled
def count(memory, table, item, weight, click):
    memory.statistics[table, item, OBSERVATIONS] += weight
    memory.statistics[table, item, CLICKS] += weight * click


@learn_step
def learn_items(memory, ranking, clicks, weight):
    """Statistics (1, item, 2): clicks and observations of each item."""
    examined = num_examined(memory, clicks)
    for position in range(examined):
        count(memory, 0, ranking[position], weight, counted_click(memory, clicks, position, examined))


@compiled
def num_shown(ranking):
    """Number of items in a list of a log; -1 ends it."""
    for position in range(len(ranking)):
        if ranking[position] < 0:
            return position
    return len(ranking)


@compiled
def scale(values, factor):
    for i in range(len(values)):
        values[i] *= factor


@log_step
def learn_log(learn, memory, rankings, clicks):
    """Learn from shown lists (list, position), -1 past their end, and their clicks (list, position) int8, in the given order."""
    window = len(memory.window_rankings)
    for row in range(len(rankings)):
        length = num_shown(rankings[row])
        if length == 0:
            continue
        # Before the list is learned, which thus counts in full.
        if memory.discount < 1.0:
            scale(memory.statistics.ravel(), memory.discount)
        if window > 0:
            slot = memory.steps[0] % window
            oldest = memory.window_rankings[slot]
            # The oldest list is taken back before the new one is written over it.
            if memory.steps[0] >= window:
                oldest_length = num_shown(oldest)
                learn(memory, oldest[:oldest_length], memory.window_clicks[slot, :oldest_length], -1.0)
            for position in range(len(oldest)):
                oldest[position] = rankings[row, position] if position < length else -1
                memory.window_clicks[slot, position] = clicks[row, position] if position < length else 0
        learn(memory, rankings[row, :length], clicks[row, :length], 1.0)
        memory.steps[0] += 1
