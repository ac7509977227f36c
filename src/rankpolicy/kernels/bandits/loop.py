"""A simulated user and a bandit, step by step; simulation/runs.py is the readable specification."""

from typing import NamedTuple

import numba
import numpy as np
from numba import types

from rankpolicy.kernels.bandits.counts import learn_log
from rankpolicy.kernels.bandits.step import GENERATOR, LEARN, MEMORY, RANK, type_of
from rankpolicy.kernels.clicks.walk import SimulatedUsers, Walk, draw_clicks, expected_reward, top_of


class ProblemArrays(NamedTuple):
    """The simulated users of all phases of a run, and the phases."""

    users: SimulatedUsers
    available: np.ndarray  # (phase, item) bool
    starts: np.ndarray  # (phase,) int64, first step of each phase
    best: np.ndarray  # (phase,) float64, expected reward of the best list
    cutoff: int


_PROBLEM = type_of(
    ProblemArrays(
        users=SimulatedUsers(np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 1, 1)), 1.0, np.zeros((1, 1, 1))),
        available=np.zeros((1, 1), np.bool_),
        starts=np.zeros(1, np.int64),
        best=np.zeros(1),
        cutoff=1,
    )
)
_SIGNATURE = types.void(
    RANK,
    LEARN,
    MEMORY,
    GENERATOR,
    _PROBLEM,
    types.boolean,  # free observations
    types.uint64,  # the user's random state
    types.int64[::1],  # steps at which regret is wanted, ascending
    types.float64[::1],  # regret at those steps, to be filled
)


@numba.njit(_SIGNATURE, cache=True, nogil=True)
def simulate_run(rank, learn, memory, generator, problem, free_observations, state, steps, regret):
    """One run; fills regret. With free_observations every item is shown once, alone, before the first step."""
    users, cutoff = problem.users, problem.cutoff
    rankings, clicks = np.empty((1, cutoff), np.int64), np.zeros((1, cutoff), np.int8)
    shown = Walk(np.empty(cutoff), users.examination, np.empty(cutoff), users.after_skip)
    rewards, probabilities, reached = np.empty(cutoff), np.empty(cutoff), np.empty(users.examination.shape[1])
    phase, items, length = -1, np.empty(0, np.int64), 0
    if free_observations:
        items = np.flatnonzero(problem.available[0])
        for i in range(len(items)):
            rankings[0, 0] = items[i]
            shown.attraction[0] = users.attraction[0, items[i]]
            shown.after_click[0] = users.after_click[0, items[i], 0]
            state = draw_clicks(top_of(shown, 1), state, clicks[0, :1])
            learn(memory, rankings[0, :1], clicks[0, :1], 1.0)
    total, num_reported = 0.0, 0
    for step in range(1, steps[-1] + 1):
        if phase + 1 < len(problem.starts) and problem.starts[phase + 1] <= step:
            phase += 1
            items = np.flatnonzero(problem.available[phase])
            length = min(cutoff, len(items))
            rankings[0, :] = -1
        rank(memory, items, generator, rankings[0, :length])
        for position in range(length):
            item = rankings[0, position]
            shown.attraction[position] = users.attraction[phase, item]
            shown.after_click[position] = users.after_click[phase, item, position]
            rewards[position] = users.rewards[phase, item, position]
        walk = top_of(shown, length)
        state = draw_clicks(walk, state, clicks[0, :length])
        learn_log(learn, memory, rankings, clicks)
        total += problem.best[phase] - expected_reward(walk, rewards, reached, probabilities)
        if step == steps[num_reported]:
            regret[num_reported] = total
            num_reported += 1
