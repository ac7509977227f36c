"""Contextual bandits: attraction is linear in the features of an item, with one parameter for all items.

Statistics (1, feature, 1 + feature): b = sum of click x over observed items with features x, and the inverse of A = prior precision +
sum of x x' / noise variance, kept by the formula of Sherman and Morrison. The posterior of the parameter is
N(inverse b / noise variance, inverse). settings[0] scales exploration, settings[1] is the noise variance.
"""

import math

import numpy as np

from rankpolicy.kernels.bandits.feedback import last_click
from rankpolicy.kernels.bandits.index import place_largest
from rankpolicy.kernels.bandits.step import compiled, learn_step, rank_step

B = 0  # column; those of the inverse follow


@compiled
def inverse_times(memory, vector):
    product = np.zeros(len(vector))
    for row in range(len(vector)):
        for column in range(len(vector)):
            product[row] += memory.statistics[0, row, 1 + column] * vector[column]
    return product


@compiled
def posterior_mean(memory):
    return inverse_times(memory, memory.statistics[0, :, B].copy()) / memory.settings[1]


@compiled
def dot(left, right):
    total = 0.0
    for place in range(len(left)):
        total += left[place] * right[place]
    return total


@compiled
def observe(memory, item, click):
    """b += click x; inverse -= (inverse x) (inverse x)' / (noise variance + x' inverse x)."""
    features = memory.features[item]
    direction = inverse_times(memory, features)
    scale = 1.0 / (memory.settings[1] + dot(features, direction))
    for row in range(len(features)):
        memory.statistics[0, row, B] += click * features[row]
        for column in range(len(features)):
            memory.statistics[0, row, 1 + column] -= scale * direction[row] * direction[column]


@learn_step
def learn_linear_to_last_click(memory, ranking, clicks, weight):
    """DCM: every item down to the last click was examined, all where there was none."""
    for position in range(last_click(clicks) + 1):
        observe(memory, ranking[position], float(clicks[position]))


@learn_step
def learn_linear_to_first_click(memory, ranking, clicks, weight):
    """Cascade: the first click ends the session."""
    for position in range(len(ranking)):
        observe(memory, ranking[position], float(clicks[position]))
        if clicks[position] == 1:
            break


@rank_step
def rank_by_linear_ucb(memory, available, generator, ranking):
    """x' mean + settings[0] sqrt(x' inverse x)."""
    mean, indices = posterior_mean(memory), np.empty(len(available))
    for i in range(len(available)):
        features = memory.features[available[i]]
        variance = dot(features, inverse_times(memory, features))
        indices[i] = dot(features, mean) + memory.settings[0] * math.sqrt(max(0.0, variance))
    place_largest(indices, available, generator, ranking)


@rank_step
def rank_by_linear_thompson_sampling(memory, available, generator, ranking):
    """x' parameter, the parameter drawn from N(mean, settings[0]^2 inverse): mean + settings[0] L z, L L' = inverse (Cholesky)."""
    parameter = posterior_mean(memory)
    size = len(parameter)
    root, noise = np.zeros((size, size)), np.empty(size)
    for row in range(size):
        noise[row] = generator.standard_normal()
        for column in range(row + 1):
            rest = memory.statistics[0, row, 1 + column] - dot(root[row, :column], root[column, :column])
            if row == column:
                root[row, row] = math.sqrt(max(0.0, rest))
            elif root[column, column] > 0.0:
                root[row, column] = rest / root[column, column]
        parameter[row] += memory.settings[0] * dot(root[row, : row + 1], noise[: row + 1])
    indices = np.empty(len(available))
    for i in range(len(available)):
        indices[i] = dot(memory.features[available[i]], parameter)
    place_largest(indices, available, generator, ranking)
