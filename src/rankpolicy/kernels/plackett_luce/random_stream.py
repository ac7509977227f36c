"""A counter-based random stream for kernels: what query q draws depends on the seed and q alone, never on threads or batch order."""

import math

import numpy as np

from rankpolicy.kernels.compile import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@njit()
def mix(state):
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    z = (state ^ (state >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@njit()
def stream(seed, query):
    """Start of query's own stream."""
    return mix(np.uint64(seed) + _GOLDEN * np.uint64(query + 1))


@njit()
def uniform(state):
    """Next state and a number strictly between 0 and 1."""
    state = state + _GOLDEN
    return state, (np.float64(mix(state) >> np.uint64(12)) + 0.5) * (1.0 / 4503599627370496.0)


@njit()
def exponential(state):
    """Next state and a draw of the standard exponential distribution, never 0."""
    state, draw = uniform(state)
    return state, -math.log(draw)
