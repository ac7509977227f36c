"""Ranked bandits: one bandit per position, an index or Exp3 (Radlinski, Kleinberg & Joachims 2008; Bubeck & Cesa-Bianchi 2012).

Positions that may not have been examined, those below the last click, do not learn from a list. Statistics (position, item, 2): clicks and
observations; for Exp3 estimated loss, and the probability with which the item was last shown there.
"""

import math
from functools import cache

import numpy as np

from rankpolicy.kernels.bandits.counts import (
    count,
    counted_click,
    current_time,
    index_of_largest,
    named_by_formulas,
    num_examined,
    remove_item,
)
from rankpolicy.kernels.bandits.formulas import code_fingerprint, formula
from rankpolicy.kernels.bandits.memory import CLICKS, OBSERVATIONS
from rankpolicy.kernels.bandits.step import compiled, learn_step, rank_step

LOSS, PROPENSITY = 0, 1  # columns


@cache
def rank_positions_by(threshold, value):
    """The rank step of an index per position. Statistics (position, item, 2): each position shows its best item not placed above it."""
    fingerprint = code_fingerprint(formula(threshold), formula(value))

    def rank_by_position(memory, available, generator, ranking):
        if fingerprint < 0:
            return
        limit = threshold(current_time(memory), memory.settings)
        remaining, num_remaining = available.copy(), len(available)
        indices = np.empty(num_remaining)
        for position in range(len(ranking)):
            for i in range(num_remaining):
                clicks = memory.statistics[position, remaining[i], CLICKS]
                observations = memory.statistics[position, remaining[i], OBSERVATIONS]
                indices[i] = value(clicks, observations, limit, memory.settings, generator)
            ranking[position] = remaining[index_of_largest(indices[:num_remaining], generator)]
            num_remaining = remove_item(remaining, num_remaining, ranking[position])

    return rank_step(named_by_formulas(rank_by_position, fingerprint))


@learn_step
def learn_positions(memory, ranking, clicks, weight):
    """Statistics (position, item, 2): clicks and observations of each item at each position."""
    examined = num_examined(memory, clicks)
    for position in range(examined):
        count(memory, position, ranking[position], weight, counted_click(memory, clicks, position, examined))


@compiled
def fill_exp3_probabilities(memory, position, items, probabilities):
    """exp(-rate loss) of each item at this position, normalised; rate = sqrt(log n / (n t))."""
    num_items = len(items)
    time = memory.steps[0] + 1.0
    rate = math.sqrt(math.log(max(num_items, 2)) / (num_items * time))
    least = np.inf  # subtracted, so that exp does not become 0 for all items
    for i in range(num_items):
        least = min(least, memory.statistics[position, items[i], LOSS])
    total = 0.0
    for i in range(num_items):
        probabilities[i] = math.exp(-rate * (memory.statistics[position, items[i], LOSS] - least))
        total += probabilities[i]
    for i in range(num_items):
        probabilities[i] /= total


@rank_step
def rank_by_exp3(memory, available, generator, ranking):
    remaining, num_remaining = available.copy(), len(available)
    probabilities = np.empty(num_remaining)
    for position in range(len(ranking)):
        fill_exp3_probabilities(memory, position, remaining[:num_remaining], probabilities[:num_remaining])
        draw, chosen = generator.random(), 0
        # The last item takes what rounding leaves of the probabilities.
        while chosen < num_remaining - 1 and draw >= probabilities[chosen]:
            draw -= probabilities[chosen]
            chosen += 1
        item = remaining[chosen]
        ranking[position] = item
        # Feedback is weighted by the probability with which the item was last shown there.
        memory.statistics[position, item, PROPENSITY] = probabilities[chosen]
        num_remaining = remove_item(remaining, num_remaining, item)


@learn_step
def learn_exp3(memory, ranking, clicks, weight):
    """An examined item without a click adds a loss of 1 / propensity. An item that this bandit never placed there adds nothing."""
    for position in range(num_examined(memory, clicks)):
        item = ranking[position]
        propensity = memory.statistics[position, item, PROPENSITY]
        if clicks[position] == 0 and propensity > 0.0:
            memory.statistics[position, item, LOSS] += weight / propensity
