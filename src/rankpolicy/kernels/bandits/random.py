"""Bandits that explore at random: a uniform share of every position, or of all."""

import numpy as np

from rankpolicy.kernels.bandits.index import CLICKS, NEVER_OBSERVED, OBSERVATIONS
from rankpolicy.kernels.bandits.step import compiled, learn_step, rank_step


@compiled
def click_rate(memory, item):
    observations = memory.statistics[0, item, OBSERVATIONS]
    return memory.statistics[0, item, CLICKS] / observations if observations > 0.0 else NEVER_OBSERVED


@rank_step
def rank_epsilon_greedy(memory, available, generator, ranking):
    """At each position any item not yet placed with probability settings[0], otherwise the one most clicked when observed."""
    left = available.copy()
    num_left = len(left)
    rates = np.empty(num_left)
    for i in range(num_left):
        rates[i] = click_rate(memory, left[i])
    for position in range(len(ranking)):
        chosen = 0
        if generator.random() < memory.settings[0]:
            chosen = min(int(generator.random() * num_left), num_left - 1)
        else:
            num_equal = 0
            for i in range(num_left):
                if num_equal == 0 or rates[i] > rates[chosen]:
                    chosen, num_equal = i, 1
                elif rates[i] == rates[chosen]:
                    num_equal += 1
                    if generator.random() * num_equal < 1.0:
                        chosen = i
        ranking[position] = left[chosen]
        num_left -= 1
        left[chosen], rates[chosen] = left[num_left], rates[num_left]


@rank_step
def rank_at_random(memory, available, generator, ranking):
    """Every list of available items is equally likely."""
    left = available.copy()
    for position in range(len(ranking)):
        chosen = position + min(int(generator.random() * (len(left) - position)), len(left) - position - 1)
        ranking[position] = left[chosen]
        left[chosen] = left[position]


@learn_step
def learn_nothing(memory, ranking, clicks, weight):
    """For a bandit whose lists do not depend on clicks."""
