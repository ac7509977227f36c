"""Bandits that explore uniformly at random: at a share of the positions, or at all of them."""

import numpy as np

from rankpolicy.kernels.bandits.counts import index_of_largest
from rankpolicy.kernels.bandits.memory import CLICKS, NEVER_OBSERVED, OBSERVATIONS
from rankpolicy.kernels.bandits.step import compiled, learn_step, propensity_step, rank_step


@compiled
def click_rate(memory, item):
    """Clicks per observation; an item that was never observed comes before all others."""
    observations = memory.statistics[0, item, OBSERVATIONS]
    return memory.statistics[0, item, CLICKS] / observations if observations > 0.0 else NEVER_OBSERVED


@compiled
def random_index(generator, size):
    """An index from 0 to size - 1, each equally likely."""
    # The product can be rounded up to size.
    return min(int(generator.random() * size), size - 1)


@rank_step
def rank_epsilon_greedy(memory, available, generator, ranking):
    """At each position a random item not yet placed with probability settings[0], otherwise the one with the highest click rate."""
    remaining, num_remaining = available.copy(), len(available)
    rates = np.empty(num_remaining)
    for i in range(num_remaining):
        rates[i] = click_rate(memory, remaining[i])
    for position in range(len(ranking)):
        if generator.random() < memory.settings[0]:
            chosen = random_index(generator, num_remaining)
        else:
            chosen = index_of_largest(rates[:num_remaining], generator)
        ranking[position] = remaining[chosen]
        num_remaining -= 1
        remaining[chosen], rates[chosen] = remaining[num_remaining], rates[num_remaining]


@propensity_step
def fill_epsilon_greedy_propensities(memory, available, ranking, propensities):
    """The probability of each item of ranking at its position, given the items above it; -1 for an item that is not available."""
    remaining, num_remaining = available.copy(), len(available)
    rates = np.empty(num_remaining)
    for i in range(num_remaining):
        rates[i] = click_rate(memory, remaining[i])
    for position in range(len(ranking)):
        index, largest, num_largest = -1, -1.0, 0
        for i in range(num_remaining):
            if remaining[i] == ranking[position]:
                index = i
            if rates[i] > largest:
                largest, num_largest = rates[i], 1
            elif rates[i] == largest:
                num_largest += 1
        if index < 0:
            propensities[position] = -1.0
            return
        greedy = 1.0 / num_largest if rates[index] == largest else 0.0
        propensities[position] = memory.settings[0] / num_remaining + (1.0 - memory.settings[0]) * greedy
        num_remaining -= 1
        remaining[index], rates[index] = remaining[num_remaining], rates[num_remaining]


@rank_step
def rank_at_random(memory, available, generator, ranking):
    """Every list of available items is equally likely."""
    remaining = available.copy()
    for position in range(len(ranking)):
        chosen = position + random_index(generator, len(remaining) - position)
        ranking[position] = remaining[chosen]
        remaining[chosen] = remaining[position]


@propensity_step
def fill_random_propensities(memory, available, ranking, propensities):
    """The same for every item that is not yet placed."""
    for position in range(len(ranking)):
        propensities[position] = 1.0 / (len(available) - position)


@propensity_step
def no_propensities(memory, available, ranking, propensities):
    """For bandits without propensities in closed form."""


@learn_step
def learn_nothing(memory, ranking, clicks, weight):
    """For a bandit whose lists do not depend on clicks."""
