"""Ranked bandits (Radlinski, Kleinberg & Joachims 2008): every position learns for itself, among the items not placed above it.

Statistics (position, item, 2). Positions below the last click may not have been examined and do not learn from that list.
"""

import math

import numpy as np

from rankpolicy.kernels.bandits.feedback import last_click
from rankpolicy.kernels.bandits.index import (
    CLICKS,
    NEVER_OBSERVED,
    OBSERVATIONS,
    current_time,
    exploration,
    place_largest,
)
from rankpolicy.kernels.bandits.kl_ucb import kl_ucb_index
from rankpolicy.kernels.bandits.step import compiled, learn_step, rank_step

LOSS, PROPENSITY = 0, 1  # columns of Exp3


@compiled
def remove_item(items, num_items, item):
    """Put the last of the first num_items in the item's place; how many are left."""
    for i in range(num_items):
        if items[i] == item:
            items[i] = items[num_items - 1]
            return num_items - 1
    return num_items


@rank_step
def rank_positions_by_kl_ucb(memory, available, generator, ranking):
    """At each position the item of the largest KL-UCB index there that is not placed yet."""
    threshold = exploration(current_time(memory), memory.settings[0])
    left = available.copy()
    num_left = len(left)
    indices = np.empty(num_left)
    for position in range(len(ranking)):
        for i in range(num_left):
            observations = memory.statistics[position, left[i], OBSERVATIONS]
            if observations <= 0.0:
                indices[i] = NEVER_OBSERVED
            else:
                mean = memory.statistics[position, left[i], CLICKS] / observations
                indices[i] = kl_ucb_index(mean, threshold / observations)
        place_largest(indices[:num_left], left[:num_left], generator, ranking[position : position + 1])
        num_left = remove_item(left, num_left, ranking[position])


@learn_step
def learn_positions(memory, ranking, clicks, weight):
    for position in range(last_click(clicks) + 1):
        memory.statistics[position, ranking[position], OBSERVATIONS] += weight
        memory.statistics[position, ranking[position], CLICKS] += weight * clicks[position]


@compiled
def fill_exp3_probabilities(memory, position, items, probabilities):
    """exp(-rate loss) of each item at this position, normalised; rate = sqrt(log n / (n t))."""
    num_items = len(items)
    time = memory.steps[0] + 1.0
    rate = math.sqrt(math.log(max(num_items, 2)) / (num_items * time))
    least = np.inf
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
    left = available.copy()
    num_left = len(left)
    probabilities = np.empty(num_left)
    for position in range(len(ranking)):
        fill_exp3_probabilities(memory, position, left[:num_left], probabilities[:num_left])
        draw, chosen = generator.random(), 0
        while chosen < num_left - 1 and draw >= probabilities[chosen]:
            draw -= probabilities[chosen]
            chosen += 1
        item = left[chosen]
        ranking[position] = item
        # Feedback is weighted by the probability at which the item was last shown there.
        memory.statistics[position, item, PROPENSITY] = probabilities[chosen]
        num_left = remove_item(left, num_left, item)


@learn_step
def learn_exp3(memory, ranking, clicks, weight):
    """No click is a loss of 1. An item this bandit has never placed there itself has no propensity and teaches nothing."""
    for position in range(last_click(clicks) + 1):
        item = ranking[position]
        propensity = memory.statistics[position, item, PROPENSITY]
        if clicks[position] == 0 and propensity > 0.0:
            memory.statistics[position, item, LOSS] += weight / propensity
