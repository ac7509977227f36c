"""How a user walks down a list and clicks: the one walk that all click models share.

A user who has reached position k, with the last click at position r (counted from 1, 0 for none),

    clicks with probability      examination[k, r] x attraction[k],
    goes on to position k + 1    with after_click[k] after a click there, with after_skip otherwise,

and clicks on nothing below the position where she stops. A click model computes these four arrays from its parameters (see
clicks/models/definition.py); sampling, likelihoods, click probabilities and simulated bandits all follow from them here. The functions are
plain Python that numba compiles; where numba is missing they run as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.kernels import HAS_NUMBA
from rankpolicy.kernels.bandits.step import compiled

if HAS_NUMBA:
    from rankpolicy.kernels.plackett_luce import random_stream

    uniform: Any = random_stream.uniform
else:

    def _next_number(generator: np.random.Generator) -> tuple[np.random.Generator, float]:
        return generator, generator.random()

    uniform = _next_number


class Walk(NamedTuple):
    """How one list is walked down; the fields that have one entry per position may also hold one row per list."""

    attraction: NDArray[np.float64]  # (position,)
    examination: NDArray[np.float64]  # (position, last click), or (position, 1) where the last click does not matter
    after_click: NDArray[np.float64]  # (position,)
    after_skip: float


class SimulatedUsers(NamedTuple):
    """The users of a simulation, which may change from phase to phase, and what a click is worth to them."""

    attraction: NDArray[np.float64]  # (phase, item)
    examination: NDArray[np.float64]  # (position, last click) or (position, 1)
    after_click: NDArray[np.float64]  # (phase, item, position)
    after_skip: float
    rewards: NDArray[np.float64]  # (phase, item, position)


def random_source(seed: int, number: int) -> Any:
    """Where the draws of run ``number`` come from: a state of the compiled stream, or a numpy generator without numba."""
    return np.uint64(random_stream.stream(seed, number)) if HAS_NUMBA else np.random.default_rng([seed, number])


@compiled
def row_of(walks, row):
    """The walk down one of many lists."""
    return Walk(walks.attraction[row], walks.examination, walks.after_click[row], walks.after_skip)


@compiled
def top_of(walk, length):
    """The walk down the first ``length`` positions."""
    return Walk(walk.attraction[:length], walk.examination, walk.after_click[:length], walk.after_skip)


@compiled
def draw_clicks(walk, source, clicks):
    """Fill clicks (position,) with 0 and 1; returns the random source."""
    last_click = 0
    clicks[:] = 0
    for k in range(len(walk.attraction)):
        column = min(last_click, walk.examination.shape[1] - 1)
        source, number = uniform(source)
        goes_on = walk.after_skip
        if number < walk.examination[k, column] * walk.attraction[k]:
            clicks[k] = 1
            last_click = k + 1
            goes_on = walk.after_click[k]
        if goes_on < 1.0:
            source, number = uniform(source)
            if number >= goes_on:
                break
    return source


@compiled
def conditional_probabilities(walk, clicks, probabilities):
    """Fill probabilities (position,) with P(click at k | clicks above k).

    They follow from P(k reached | clicks above k): after a click it is after_click, after a skip

        after_skip x P(reached) (1 - p) / (1 - P(reached) p),    p = P(click | reached).
    """
    reached, last_click = 1.0, 0
    for k in range(len(walk.attraction)):
        column = min(last_click, walk.examination.shape[1] - 1)
        if_reached = walk.examination[k, column] * walk.attraction[k]
        probabilities[k] = reached * if_reached
        if clicks[k]:
            reached, last_click = walk.after_click[k], k + 1
        else:
            if reached < 1.0:
                reached = reached * (1.0 - if_reached) / (1.0 - reached * if_reached)
            reached *= walk.after_skip


@compiled
def click_probabilities(walk, reached, probabilities):
    """Fill probabilities (position,) with P(click at k), whatever was clicked above.

    ``reached`` (last click,) is working memory: P(k reached and the last click above it was there). Where the last click does not
    matter it is a single number.
    """
    last_column = len(reached) - 1
    reached[:] = 0.0
    reached[0] = 1.0
    for k in range(len(walk.attraction)):
        clicked = 0.0
        for r in range(min(k, last_column) + 1):
            from_here = reached[r] * walk.examination[k, r] * walk.attraction[k]
            reached[r] = (reached[r] - from_here) * walk.after_skip
            clicked += from_here
        reached[min(k + 1, last_column)] += clicked * walk.after_click[k]
        probabilities[k] = clicked


@compiled
def expected_reward(walk, rewards, reached, probabilities):
    """The sum over positions of P(click) x rewards (position,); the last two arguments are working memory."""
    click_probabilities(walk, reached, probabilities)
    total = 0.0
    for k in range(len(walk.attraction)):
        total += probabilities[k] * rewards[k]
    return total


@compiled
def draw_clicks_of_lists(walks, source, clicks):
    """Fill clicks (list, position)."""
    for row in range(len(clicks)):
        source = draw_clicks(row_of(walks, row), source, clicks[row])


@compiled
def conditional_probabilities_of_lists(walks, clicks, probabilities):
    """Fill probabilities (list, position) with P(click | clicks above)."""
    for row in range(len(clicks)):
        conditional_probabilities(row_of(walks, row), clicks[row], probabilities[row])


@compiled
def click_probabilities_of_lists(walks, probabilities):
    """Fill probabilities (list, position) with P(click)."""
    reached = np.empty(walks.examination.shape[1])
    for row in range(len(probabilities)):
        click_probabilities(row_of(walks, row), reached, probabilities[row])
