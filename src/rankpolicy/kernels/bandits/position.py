"""Bandits for users who examine each cell with some probability. PBM: cells are positions; UBM: positions with the last click above.

Statistics (cell, item, 2): clicks and lists, which are sufficient statistics of PBM and UBM. settings[0] and settings[1] belong to
the index; settings[2] is 1 if the best item goes to the most examined position, 0 if to the first; the examination of each cell
follows from settings[3] on, or nothing if it is to be estimated.

PBM-PIE (Lagrée, Vernade & Cappé 2016): leaders by their estimates, and exploration at the least examined position only; settings[0] is the
factor of log t.
"""

import math

import numpy as np

from rankpolicy.kernels.bandits.counts import count, current_time, place_in_order, place_largest
from rankpolicy.kernels.bandits.memory import CLICKS, NEVER_OBSERVED, OBSERVATIONS
from rankpolicy.kernels.bandits.step import compiled, learn_step, rank_step
from rankpolicy.kernels.bandits.uniform import random_index

NUM_OTHER_SETTINGS = 3
NUM_ROUNDS = 10  # in which the examination of cells is estimated


@compiled
def fill_examination(memory, examination):
    """Examination of each cell: as set, or by rounds of attraction = clicks / examined, examination = clicks / attracted, 1 at cell 0.

    The first round starts from the click rate of each cell relative to cell 0. One imaginary clicked list per cell avoids 0 / 0.
    """
    num_cells, num_items = len(examination), memory.statistics.shape[1]
    if len(memory.settings) > NUM_OTHER_SETTINGS:
        for cell in range(num_cells):
            examination[cell] = memory.settings[NUM_OTHER_SETTINGS + cell]
        return
    clicks, lists, attraction = np.ones(num_cells), np.ones(num_cells), np.empty(num_items)
    for cell in range(num_cells):
        for item in range(num_items):
            clicks[cell] += memory.statistics[cell, item, CLICKS]
            lists[cell] += memory.statistics[cell, item, OBSERVATIONS]
    for cell in range(num_cells):
        examination[cell] = min(1.0, clicks[cell] / lists[cell] * lists[0] / clicks[0])
    for _ in range(NUM_ROUNDS):
        for item in range(num_items):
            clicked, examined = observed(memory, item, examination)
            attraction[item] = min(1.0, clicked / examined) if examined > 0.0 else 0.0
        for cell in range(1, num_cells):
            attracted = 1.0
            for item in range(num_items):
                attracted += memory.statistics[cell, item, OBSERVATIONS] * attraction[item]
            examination[cell] = min(1.0, clicks[cell] / attracted)


@compiled
def observed(memory, item, examination):
    """Clicks on an item, and the expected number of times it was examined."""
    clicks, examined = 0.0, 0.0
    for cell in range(len(examination)):
        clicks += memory.statistics[cell, item, CLICKS]
        examined += examination[cell] * memory.statistics[cell, item, OBSERVATIONS]
    return clicks, examined


@compiled
def place_where_examined(memory, indices, available, examination, generator, ranking):
    """Show the items of the largest indices, the largest at the top or where examination is highest."""
    place_largest(indices, available, generator, ranking)
    if memory.settings[2] == 0.0:
        return
    positions = np.empty_like(ranking)
    place_largest(examination[: len(ranking)].copy(), np.arange(len(ranking)), generator, positions)
    place_in_order(positions, ranking)


@rank_step
def rank_examined_by_ucb(memory, available, generator, ranking):
    """clicks / examined + sqrt(lists / examined) sqrt(settings[0] log t / examined)."""
    examination = np.empty(len(memory.statistics))
    fill_examination(memory, examination)
    threshold = memory.settings[0] * math.log(current_time(memory))
    indices = np.empty(len(available))
    for i in range(len(available)):
        lists = 0.0
        for cell in range(len(examination)):
            lists += memory.statistics[cell, available[i], OBSERVATIONS]
        clicks, examined = observed(memory, available[i], examination)
        if examined <= 0.0:
            indices[i] = NEVER_OBSERVED
        else:
            indices[i] = (clicks + math.sqrt(max(0.0, lists * threshold))) / examined
    place_where_examined(memory, indices, available, examination, generator, ranking)


@rank_step
def rank_examined_by_thompson_sampling(memory, available, generator, ranking):
    """A draw of Beta(settings[0] + n mean, settings[1] + n (1 - mean)), mean = clicks / examined.

    n is the number of sure examinations that would carry the same information about the item.
    """
    examination = np.empty(len(memory.statistics))
    fill_examination(memory, examination)
    indices = np.empty(len(available))
    for i in range(len(available)):
        clicks, examined = observed(memory, available[i], examination)
        mean = min(1.0, max(0.0, clicks) / examined) if examined > 0.0 else 0.0
        likely = (memory.settings[0] + mean * examined) / (memory.settings[0] + memory.settings[1] + examined)
        number = 0.0
        for cell in range(len(examination)):
            share = examination[cell] * (1.0 - likely) / (1.0 - examination[cell] * likely)
            number += share * max(0.0, memory.statistics[cell, available[i], OBSERVATIONS])
        indices[i] = generator.beta(memory.settings[0] + number * mean, memory.settings[1] + number * (1.0 - mean))
    place_where_examined(memory, indices, available, examination, generator, ranking)


@learn_step
def learn_by_position(memory, ranking, clicks, weight):
    """PBM: the cell of an item is its position."""
    for position in range(len(ranking)):
        count(memory, position, ranking[position], weight, clicks[position])


@learn_step
def learn_by_last_click_above(memory, ranking, clicks, weight):
    """UBM: cells of position k (from 0) are numbered k (k + 1) / 2 + r, r the 1-based position of the last click above, 0 for none."""
    last = 0
    for position in range(len(ranking)):
        cell = position * (position + 1) // 2 + last
        count(memory, cell, ranking[position], weight, clicks[position])
        if clicks[position] == 1:
            last = position + 1


@compiled
def may_reach(memory, item, examination, attraction, threshold):
    """Whether the upper confidence bound of an item's attraction is ``attraction`` or more.

    D(a) = sum over cells of N kl(S / N, e a) is convex with its minimum at the likeliest attraction, and the bound is the largest a with
    D(a) <= threshold. So the bound reaches a if D still falls at a, or if D(a) <= threshold.
    """
    divergence, slope = 0.0, 0.0
    for cell in range(len(examination)):
        lists = max(0.0, memory.statistics[cell, item, OBSERVATIONS])
        clicks = min(lists, max(0.0, memory.statistics[cell, item, CLICKS]))
        skips, chance = lists - clicks, examination[cell] * attraction
        if clicks > 0.0:
            if chance <= 0.0:
                return True
            divergence += clicks * math.log(clicks / lists / chance)
            slope -= clicks / attraction
        if skips > 0.0:
            if chance >= 1.0:
                return False
            divergence += skips * math.log(skips / lists / (1.0 - chance))
            slope += skips * examination[cell] / (1.0 - chance)
    return slope <= 0.0 or divergence <= threshold


@rank_step
def rank_by_parsimonious_exploration(memory, available, generator, ranking):
    """The leaders where examination is highest; at the last of these places, every other time, one that may be better than its leader."""
    examination = np.empty(len(memory.statistics))
    fill_examination(memory, examination)
    length, num_items = len(ranking), len(available)
    estimates = np.empty(num_items)
    for i in range(num_items):
        clicks, examined = observed(memory, available[i], examination)
        estimates[i] = clicks / examined if examined > 0.0 else NEVER_OBSERVED
    leaders, positions = np.empty_like(ranking), np.empty_like(ranking)
    keys = estimates.copy()
    place_largest(keys, np.arange(num_items), generator, leaders)
    place_largest(examination[:length].copy(), np.arange(length), generator, positions)
    last = leaders[length - 1]
    threshold = memory.settings[0] * math.log(current_time(memory))
    rivals, num_rivals = np.empty(num_items, np.int64), 0
    for i in range(num_items):
        # place_largest has set the keys of the leaders to -inf. An item that was never shown may be anything.
        if keys[i] == -np.inf or estimates[last] >= NEVER_OBSERVED:
            continue
        if may_reach(memory, available[i], examination, min(1.0, estimates[last]), threshold):
            rivals[num_rivals] = i
            num_rivals += 1
    if num_rivals > 0 and generator.random() < 0.5:
        leaders[length - 1] = rivals[random_index(generator, num_rivals)]
    for k in range(length):
        ranking[positions[k]] = available[leaders[k]]
