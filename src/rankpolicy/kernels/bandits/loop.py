"""A simulated user and a bandit, step by step; simulation/reference.py is the readable specification."""

from typing import NamedTuple

import numba
import numpy as np
from numba import types

from rankpolicy.kernels.bandits.learn import learn_log
from rankpolicy.kernels.bandits.step import GENERATOR, LEARN, MEMORY, RANK, type_of
from rankpolicy.kernels.clicks.users import draw_clicks, expected_reward


class ProblemArrays(NamedTuple):
    """A simulated user and the phases of a run."""

    kind: int  # code of the user's click model, see kernels/clicks/users.py
    attraction: np.ndarray  # (phase, item) float64
    satisfaction: np.ndarray  # (phase, item) float64, or no columns
    parameters: np.ndarray  # (row, column) float64, of the user
    available: np.ndarray  # (phase, item) bool
    starts: np.ndarray  # (phase,) int64, first step of each phase
    best: np.ndarray  # (phase,) float64, expected reward of the best list
    cutoff: int


_TABLE = np.zeros((1, 1))
_PROBLEM = type_of(
    ProblemArrays(
        kind=0,
        attraction=_TABLE,
        satisfaction=_TABLE,
        parameters=_TABLE,
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
    kind, parameters, cutoff = problem.kind, problem.parameters, problem.cutoff
    rankings, clicks = np.empty((1, cutoff), np.int64), np.zeros((1, cutoff), np.int8)
    has_satisfaction = problem.satisfaction.shape[1] > 0
    shown_attraction, shown_satisfaction = np.empty(cutoff), np.empty(cutoff if has_satisfaction else 0)
    phase, items, length = -1, np.empty(0, np.int64), 0
    if free_observations:
        items = np.flatnonzero(problem.available[0])
        for i in range(len(items)):
            rankings[0, 0] = items[i]
            shown_attraction[0] = problem.attraction[0, items[i]]
            if has_satisfaction:
                shown_satisfaction[0] = problem.satisfaction[0, items[i]]
            state = draw_clicks(kind, shown_attraction[:1], shown_satisfaction[:1], parameters, state, clicks[0, :1])
            learn(memory, rankings[0, :1], clicks[0, :1], 1.0)
    total, wanted = 0.0, 0
    for step in range(1, steps[-1] + 1):
        if phase + 1 < len(problem.starts) and problem.starts[phase + 1] <= step:
            phase += 1
            items = np.flatnonzero(problem.available[phase])
            length = min(cutoff, len(items))
            rankings[0, :] = -1
        rank(memory, items, generator, rankings[0, :length])
        for position in range(length):
            item = rankings[0, position]
            shown_attraction[position] = problem.attraction[phase, item]
            if has_satisfaction:
                shown_satisfaction[position] = problem.satisfaction[phase, item]
        of_list = shown_satisfaction[: min(length, len(shown_satisfaction))]
        state = draw_clicks(kind, shown_attraction[:length], of_list, parameters, state, clicks[0, :length])
        learn_log(learn, memory, rankings, clicks)
        total += problem.best[phase] - expected_reward(kind, shown_attraction[:length], of_list, parameters)
        if step == steps[wanted]:
            regret[wanted] = total
            wanted += 1
