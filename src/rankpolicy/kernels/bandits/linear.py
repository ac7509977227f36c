"""Contextual bandits: the attraction of an item is linear in its features, with one parameter vector for all items.

Statistics (1, feature, 1 + feature): b = sum of click x over observed items with features x, and the inverse of A = prior precision +
sum of x x' / noise variance, updated by the Sherman-Morrison formula. The posterior of the parameter is
N(inverse b / noise variance, inverse). settings[0] is the noise variance, settings[1] scales exploration.
"""

import math

import numpy as np

from rankpolicy.kernels.bandits.counts import counted_click, num_examined, place_by_index
from rankpolicy.kernels.bandits.step import compiled, learn_step, rank_step

B = 0  # column of b; the columns of the inverse follow


@compiled
def inverse_times(memory, vector):
    product = np.zeros(len(vector))
    for row in range(len(vector)):
        for column in range(len(vector)):
            product[row] += memory.statistics[0, row, 1 + column] * vector[column]
    return product


@compiled
def posterior_mean(memory):
    return inverse_times(memory, memory.statistics[0, :, B].copy()) / memory.settings[0]


@compiled
def dot(first, second):
    total = 0.0
    for i in range(len(first)):
        total += first[i] * second[i]
    return total


@compiled
def observe(memory, item, click):
    """b += click x; inverse -= (inverse x) (inverse x)' / (noise variance + x' inverse x)."""
    features = memory.features[item]
    direction = inverse_times(memory, features)
    scale = 1.0 / (memory.settings[0] + dot(features, direction))
    for row in range(len(features)):
        memory.statistics[0, row, B] += click * features[row]
        for column in range(len(features)):
            memory.statistics[0, row, 1 + column] -= scale * direction[row] * direction[column]


@learn_step
def learn_linear(memory, ranking, clicks, weight):
    """One step of ridge regression for every examined item; a list cannot be taken back, so weight is always 1."""
    examined = num_examined(memory, clicks)
    for position in range(examined):
        observe(memory, ranking[position], counted_click(memory, clicks, position, examined))


@rank_step
def rank_by_linear_ucb(memory, available, generator, ranking):
    """x' mean + settings[1] sqrt(x' inverse x)."""
    mean, indices = posterior_mean(memory), np.empty(len(available))
    for i in range(len(available)):
        features = memory.features[available[i]]
        variance = dot(features, inverse_times(memory, features))
        indices[i] = dot(features, mean) + memory.settings[1] * math.sqrt(max(0.0, variance))
    place_by_index(memory, indices, available, generator, ranking)


@rank_step
def rank_by_linear_thompson_sampling(memory, available, generator, ranking):
    """x' parameter, the parameter drawn from N(mean, settings[1]^2 inverse): mean + settings[1] L z, L L' = inverse (Cholesky)."""
    parameter = posterior_mean(memory)
    size = len(parameter)
    root, noise = np.zeros((size, size)), np.empty(size)
    for row in range(size):
        noise[row] = generator.standard_normal()
        for column in range(row + 1):
            remainder = memory.statistics[0, row, 1 + column] - dot(root[row, :column], root[column, :column])
            if row == column:
                root[row, row] = math.sqrt(max(0.0, remainder))
            elif root[column, column] > 0.0:
                root[row, column] = remainder / root[column, column]
        parameter[row] += memory.settings[1] * dot(root[row, : row + 1], noise[: row + 1])
    indices = np.empty(len(available))
    for i in range(len(available)):
        indices[i] = dot(memory.features[available[i]], parameter)
    place_by_index(memory, indices, available, generator, ranking)
