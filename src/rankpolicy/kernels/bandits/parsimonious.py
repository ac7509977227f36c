"""PBM-PIE (Lagrée, Vernade & Cappé 2016): leaders by their estimates, and exploration at the least examined position only.

Statistics and settings are those of examination.py; settings[0] is the factor of log t.
"""

import math

import numpy as np

from rankpolicy.kernels.bandits.examination import fill_examination, observed
from rankpolicy.kernels.bandits.index import current_time, place_largest
from rankpolicy.kernels.bandits.memory import CLICKS, NEVER_OBSERVED, OBSERVATIONS
from rankpolicy.kernels.bandits.random import random_place
from rankpolicy.kernels.bandits.step import compiled, rank_step


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
        leaders[length - 1] = rivals[random_place(generator, num_rivals)]
    for place in range(length):
        ranking[positions[place]] = available[leaders[place]]
