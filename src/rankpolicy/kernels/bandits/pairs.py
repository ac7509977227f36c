"""Bandits that compare pairs of items shown side by side in random order, and so need no click model: TopRank and BubbleRank.

Statistics (table, item, item): how much more often the first of a pair was clicked than the second, and in how many lists exactly one of
the two was clicked. An item is not compared with itself, so the diagonals are free to describe the last list.
"""

import math

import numpy as np

from rankpolicy.kernels.bandits.counts import place_largest
from rankpolicy.kernels.bandits.step import compiled, learn_step, rank_step
from rankpolicy.kernels.bandits.uniform import rank_at_random

TOP_RANK_CONSTANT = 4.0 * math.sqrt(2.0 / math.pi) / math.erf(math.sqrt(2.0))
DIFFERENCE, DIFFERENT, IS_WORSE = 0, 1, 2  # tables; IS_WORSE[i, j] (TopRank only): i is worse than j with confidence
BLOCK = DIFFERENCE  # diagonal, TopRank: the block, from 1, that the item was in when last ranked; 0: none
PLACE = DIFFERENCE  # diagonal, BubbleRank: position of the item in the leading ranking, from 0
PARTNER = DIFFERENT  # diagonal, BubbleRank: 1 + the item with which it was shown in random order; 0: none


@compiled
def add_comparison(memory, item, other, difference):
    if difference != 0.0:
        memory.statistics[DIFFERENCE, item, other] += difference
        memory.statistics[DIFFERENCE, other, item] -= difference
        memory.statistics[DIFFERENT, item, other] += 1.0
        memory.statistics[DIFFERENT, other, item] += 1.0


@rank_step
def rank_by_blocks(memory, available, generator, ranking):
    """The first block holds the items that none is known to beat, the next block those of the remaining items; random order in each."""
    remaining = available.copy()
    for item in range(memory.statistics.shape[1]):  # unavailable items too, which are in no block of this list
        memory.statistics[BLOCK, item, item] = 0.0
    num_placed, number = 0, 0
    while num_placed < len(ranking):
        number += 1
        is_best = np.ones(len(remaining), np.bool_)
        for i in range(len(remaining)):
            for j in range(len(remaining)):
                if memory.statistics[IS_WORSE, remaining[i], remaining[j]] > 0.0:
                    is_best[i] = False
        block, beaten = remaining[is_best], remaining[~is_best]
        if len(block) == 0:  # a cycle, which only false conclusions can close
            block, beaten = remaining, block
        for i in range(len(block)):
            memory.statistics[BLOCK, block[i], block[i]] = number
        end = min(num_placed + len(block), len(ranking))
        rank_at_random(memory, block, generator, ranking[num_placed:end])
        num_placed, remaining = end, beaten


@learn_step
def learn_blocks(memory, ranking, clicks, weight):
    """A clicked item beats those of its block that were not clicked, shown or not; settings[0] is the probability of a false conclusion."""
    num_items = memory.statistics.shape[1]
    is_clicked = np.zeros(num_items, np.bool_)
    for position in range(len(ranking)):
        is_clicked[ranking[position]] = clicks[position] == 1
    for position in range(len(ranking)):
        item = ranking[position]
        block = memory.statistics[BLOCK, item, item]
        if clicks[position] == 0 or block == 0.0:
            continue
        for other in range(num_items):
            if not is_clicked[other] and memory.statistics[BLOCK, other, other] == block:
                add_comparison(memory, item, other, 1.0)
                different = memory.statistics[DIFFERENT, item, other]
                log = math.log(TOP_RANK_CONSTANT / memory.settings[0] * math.sqrt(different))
                if memory.statistics[DIFFERENCE, item, other] >= math.sqrt(2.0 * different * log):
                    memory.statistics[IS_WORSE, other, item] = 1.0


@compiled
def is_better(memory, item, other):
    """With confidence 1 - settings[0]: difference > 2 sqrt(lists log(1 / settings[0]))."""
    bound = 2.0 * math.sqrt(memory.statistics[DIFFERENT, item, other] * math.log(1.0 / memory.settings[0]))
    return memory.statistics[DIFFERENCE, item, other] > bound


@rank_step
def rank_by_bubbles(memory, available, generator, ranking):
    """The leading ranking, with pairs of neighbours in random order unless the upper item is better with confidence."""
    priorities = np.empty(len(available))
    for i in range(len(available)):
        priorities[i] = -memory.statistics[PLACE, available[i], available[i]]
        memory.statistics[PARTNER, available[i], available[i]] = 0.0
    shown = np.empty(min(len(ranking) + 1, len(available)), np.int64)  # and the item that may enter from below
    place_largest(priorities, available, generator, shown)
    for k in range(len(shown) - 1):
        upper, lower = shown[k], shown[k + 1]
        if is_better(memory, lower, upper):
            upper_place = memory.statistics[PLACE, upper, upper]
            memory.statistics[PLACE, upper, upper] = memory.statistics[PLACE, lower, lower]
            memory.statistics[PLACE, lower, lower] = upper_place
            shown[k], shown[k + 1] = lower, upper
    for k in range(memory.steps[0] % 2, len(shown) - 1, 2):
        upper, lower = shown[k], shown[k + 1]
        if not is_better(memory, upper, lower):
            memory.statistics[PARTNER, upper, upper] = lower + 1.0
            memory.statistics[PARTNER, lower, lower] = upper + 1.0
            if generator.random() < 0.5:
                shown[k], shown[k + 1] = lower, upper
    for position in range(len(ranking)):
        ranking[position] = shown[position]


@learn_step
def learn_bubbles(memory, ranking, clicks, weight):
    """Compare the pairs that were in random order. Of a pair at the end only one item is shown; the other counts as not clicked."""
    for position in range(len(ranking)):
        item = ranking[position]
        partner = int(memory.statistics[PARTNER, item, item]) - 1
        if partner < 0:
            continue
        is_below = position + 1 < len(ranking) and ranking[position + 1] == partner
        is_above = position > 0 and ranking[position - 1] == partner
        if is_below:
            add_comparison(memory, item, partner, float(clicks[position]) - float(clicks[position + 1]))
        elif not is_above and position + 1 == len(ranking):
            add_comparison(memory, item, partner, float(clicks[position]))
