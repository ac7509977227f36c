"""Shapley values of a game: exact by enumeration of all coalitions, or estimated from random orders of the players."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Coalitions (coalition, player) of True and False -> the value of each (coalition,).
Game = Callable[[NDArray[np.bool_]], NDArray[np.float64]]


class ShapleyValues(NamedTuple):
    """Values of the players."""

    values: NDArray[np.float64]
    variances: NDArray[np.float64]


def enumerated_shapley(game: Game, *, num_players: int, empty: float, full: float) -> ShapleyValues:
    """Exact values from all 2^k coalitions of k players (Shapley 1953).

    phi_j = sum over coalitions S without j of |S|! (k - |S| - 1)! / k! * (v(S + j) - v(S))

    Parameters
    ----------
    game
        Function from coalitions (coalition, player) to their values (coalition,).
    num_players
        How many players there are, at least one.
    empty, full
        Values of no players and of all players.

    >>> enumerated_shapley(lambda taken: taken @ np.array([1.0, 2.0]), num_players=2, empty=0.0, full=5.0).values
    array([2., 3.])
    """
    members = np.arange(1 << num_players)
    coalitions = (members[:, None] >> np.arange(num_players)) & 1 == 1
    values = np.empty(len(members))
    values[0], values[-1] = empty, full
    if len(members) > 2:
        values[1:-1] = game(coalitions[1:-1])
    weights = 1 / np.array([num_players * comb(num_players - 1, size) for size in range(num_players)])
    sizes = coalitions.sum(axis=1)
    shares = np.empty(num_players)
    for player in range(num_players):
        without = members[~coalitions[:, player]]
        shares[player] = weights[sizes[without]] @ (values[without | 1 << player] - values[without])
    return ShapleyValues(shares, np.zeros(num_players))


def sampled_shapley(
    game: Game, *, num_players: int, empty: float, full: float, num_samples: int, generator: np.random.Generator
) -> ShapleyValues:
    """Values estimated from random orders of the players, each with its reverse (Castro et al. 2009; Mitchell et al. 2022).

    Along an order the players join one by one, and each earns what its joining changes. Whatever the orders are, these changes add up to
    the value of all players minus that of none, so the estimates do too.

    Parameters
    ----------
    game
        Function from coalitions (coalition, player) to their values (coalition,).
    num_players
        How many players there are, at least one.
    empty, full
        Values of no players and of all players.
    num_samples
        How many orders to draw, 2 or more; the game is evaluated about ``2 * num_samples * num_players`` times.
    generator
        Source of randomness.
    """
    ranks = np.arange(num_players)
    shares = np.zeros((num_samples, num_players))
    for sample in range(num_samples):
        order = generator.permutation(num_players)
        for joining in (order, order[::-1]):
            ranks_in_order = np.empty(num_players, np.int64)
            ranks_in_order[joining] = ranks
            values = np.empty(num_players + 1)
            values[0], values[-1] = empty, full
            if num_players > 1:
                values[1:-1] = game(ranks_in_order < ranks[1:, None])  # row s: the players at the first s places
            shares[sample, joining] += np.diff(values) / 2
    return ShapleyValues(shares.mean(axis=0), shares.var(axis=0, ddof=1) / num_samples)
