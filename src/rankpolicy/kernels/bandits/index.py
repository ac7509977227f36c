"""Index policies: every item has a number, the largest are shown. Statistics (1, item, 2): clicks and observations of each item.

settings[0] is the index's own, settings[1] is 1 to show the best item last instead of first. An item that was never observed comes before
all others; equal indices come in random order.
"""

import math

import numpy as np

from rankpolicy.kernels.bandits.kl_ucb import kl_ucb_index
from rankpolicy.kernels.bandits.step import compiled, rank_step

CLICKS, OBSERVATIONS = 0, 1
NEVER_OBSERVED = 1e9  # above every index


@compiled
def current_time(memory):
    """How many lists count by now, the next one included: steps, but not more than a window or a discount keeps."""
    time = memory.steps[0] + 1.0
    if len(memory.window_rankings) > 0:
        time = min(time, float(len(memory.window_rankings)))
    if memory.discount < 1.0:
        time = (1.0 - memory.discount**time) / (1.0 - memory.discount)
    return time


@compiled
def exploration(time, log_log_weight):
    """log t + c log log t, and not under 0, as it would be for the first few lists."""
    if time <= 1.0:
        return 0.0
    return max(0.0, math.log(time) + log_log_weight * math.log(math.log(time)))


@compiled
def place_largest(indices, available, generator, ranking):
    """Fill ranking with the available items of the largest indices, largest first, equal ones at random; overwrites indices."""
    for position in range(len(ranking)):
        best, num_equal = 0, 0
        for i in range(len(available)):
            if num_equal == 0 or indices[i] > indices[best]:
                best, num_equal = i, 1
            elif indices[i] == indices[best]:
                num_equal += 1
                if generator.random() * num_equal < 1.0:
                    best = i
        ranking[position] = available[best]
        indices[best] = -np.inf


@compiled
def place_by_index(memory, indices, available, generator, ranking):
    place_largest(indices, available, generator, ranking)
    if memory.settings[1] > 0.0:
        for position in range(len(ranking) // 2):
            mirrored = len(ranking) - 1 - position
            ranking[position], ranking[mirrored] = ranking[mirrored], ranking[position]


@rank_step
def rank_by_kl_ucb(memory, available, generator, ranking):
    """max {q : T kl(mean, q) <= log t + settings[0] log log t}."""
    threshold = exploration(current_time(memory), memory.settings[0])
    indices = np.empty(len(available))
    for i in range(len(available)):
        observations = memory.statistics[0, available[i], OBSERVATIONS]
        if observations <= 0.0:
            indices[i] = NEVER_OBSERVED
        else:
            mean = memory.statistics[0, available[i], CLICKS] / observations
            indices[i] = kl_ucb_index(mean, threshold / observations)
    place_by_index(memory, indices, available, generator, ranking)


@rank_step
def rank_by_ucb1(memory, available, generator, ranking):
    """mean + sqrt(settings[0] log t / T)."""
    threshold = memory.settings[0] * exploration(current_time(memory), 0.0)
    indices = np.empty(len(available))
    for i in range(len(available)):
        observations = memory.statistics[0, available[i], OBSERVATIONS]
        if observations <= 0.0:
            indices[i] = NEVER_OBSERVED
        else:
            mean = memory.statistics[0, available[i], CLICKS] / observations
            indices[i] = mean + math.sqrt(threshold / observations)
    place_by_index(memory, indices, available, generator, ranking)


@rank_step
def rank_by_thompson_sampling(memory, available, generator, ranking):
    """A draw of Beta(settings[0] + clicks, settings[2] + observations without click)."""
    indices = np.empty(len(available))
    for i in range(len(available)):
        clicks = memory.statistics[0, available[i], CLICKS]
        others = memory.statistics[0, available[i], OBSERVATIONS] - clicks
        # Discounts leave a rounding error on either side of 0.
        indices[i] = generator.beta(memory.settings[0] + max(0.0, clicks), memory.settings[2] + max(0.0, others))
    place_by_index(memory, indices, available, generator, ranking)
