"""One Exp3 bandit per position (Radlinski, Kleinberg & Joachims 2008; Bubeck & Cesa-Bianchi 2012).

Statistics (position, item, 2): estimated loss, and the probability with which the item was last shown there. Positions that may not
have been examined, those below the last click, do not learn from a list.
"""

import math

import numpy as np

from rankpolicy.kernels.bandits.feedback import num_examined
from rankpolicy.kernels.bandits.index import remove_item
from rankpolicy.kernels.bandits.step import compiled, learn_step, rank_step

LOSS, PROPENSITY = 0, 1  # columns


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
    left, num_left = available.copy(), len(available)
    probabilities = np.empty(num_left)
    for position in range(len(ranking)):
        fill_exp3_probabilities(memory, position, left[:num_left], probabilities[:num_left])
        draw, chosen = generator.random(), 0
        while chosen < num_left - 1 and draw >= probabilities[chosen]:
            draw -= probabilities[chosen]
            chosen += 1
        item = left[chosen]
        ranking[position] = item
        # Feedback is weighted by the probability with which the item was last shown there.
        memory.statistics[position, item, PROPENSITY] = probabilities[chosen]
        num_left = remove_item(left, num_left, item)


@learn_step
def learn_exp3(memory, ranking, clicks, weight):
    """An examined item without a click adds a loss of 1 / propensity. An item that this bandit never placed there adds nothing."""
    for position in range(num_examined(memory, clicks)):
        item = ranking[position]
        propensity = memory.statistics[position, item, PROPENSITY]
        if clicks[position] == 0 and propensity > 0.0:
            memory.statistics[position, item, LOSS] += weight / propensity
