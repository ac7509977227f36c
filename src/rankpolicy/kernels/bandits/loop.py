"""A simulated user and a bandit, step by step; simulation/reference.py is the readable specification."""

import numba
import numpy as np
from numba import types

from rankpolicy.kernels.bandits.learn import learn_log
from rankpolicy.kernels.bandits.step import GENERATOR, LEARN, MEMORY, RANK
from rankpolicy.kernels.clicks.users import draw_clicks, expected_reward

_NUMBERS, _TABLE = types.float64[::1], types.float64[:, ::1]
_SIGNATURE = types.void(
    RANK,
    LEARN,
    MEMORY,
    GENERATOR,
    types.int64,  # kind of user
    _TABLE,  # attraction (phase, item)
    _TABLE,  # satisfaction (phase, item), or no columns
    _TABLE,  # parameters of the user
    types.boolean[:, ::1],  # available (phase, item)
    types.int64[::1],  # starts (phase,), the first step of each
    _NUMBERS,  # best (phase,), expected reward of the best list
    types.int64,  # cutoff
    types.boolean,  # free observations
    types.uint64,  # the user's random state
    types.int64[::1],  # steps at which regret is wanted, rising
    _NUMBERS,  # regret there, to be filled
)


@numba.njit(_SIGNATURE, cache=True, nogil=True)
def simulate_run(
    rank,
    learn,
    memory,
    generator,
    kind,
    attraction,
    satisfaction,
    parameters,
    available,
    starts,
    best,
    cutoff,
    free_observations,
    state,
    steps,
    regret,
):
    rankings, clicks = np.empty((1, cutoff), np.int64), np.zeros((1, cutoff), np.int8)
    shown_attraction, shown_satisfaction = np.empty(cutoff), np.empty(cutoff if satisfaction.shape[1] > 0 else 0)
    phase, items, length = -1, np.empty(0, np.int64), 0
    if free_observations:
        items = np.flatnonzero(available[0])
        for i in range(len(items)):
            rankings[0, 0] = items[i]
            shown_attraction[0] = attraction[0, items[i]]
            if len(shown_satisfaction) > 0:
                shown_satisfaction[0] = satisfaction[0, items[i]]
            state = draw_clicks(kind, shown_attraction[:1], shown_satisfaction[:1], parameters, state, clicks[0, :1])
            learn(memory, rankings[0, :1], clicks[0, :1], 1.0)
    total, wanted = 0.0, 0
    for step in range(1, steps[-1] + 1):
        if phase + 1 < len(starts) and starts[phase + 1] <= step:
            phase += 1
            items = np.flatnonzero(available[phase])
            length = min(cutoff, len(items))
            rankings[0, :] = -1
        rank(memory, items, generator, rankings[0, :length])
        for position in range(length):
            item = rankings[0, position]
            shown_attraction[position] = attraction[phase, item]
            if len(shown_satisfaction) > 0:
                shown_satisfaction[position] = satisfaction[phase, item]
        of_list = shown_satisfaction[: min(length, len(shown_satisfaction))]
        state = draw_clicks(kind, shown_attraction[:length], of_list, parameters, state, clicks[0, :length])
        learn_log(learn, memory, rankings, clicks)
        total += best[phase] - expected_reward(kind, shown_attraction[:length], of_list, parameters)
        if step == steps[wanted]:
            regret[wanted] = total
            wanted += 1
