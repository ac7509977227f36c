"""Simulated users: what one shown list is clicked. simulation/users.py says what each kind does and is the readable reference.

All kinds share one call, so that a compiled loop takes any of them. Shapes of what they need, with as many positions as a list may have:

    kind     attraction   satisfaction  parameters
    CASCADE  (position,)  (0,)          (0, 0)
    DCM      (position,)  (0,)          (1, position)             v: satisfied after a click at that position
    PBM      (position,)  (0,)          (1, position)             examined
    UBM      (position,)  (0,)          (position, position + 1)  examined at row k, last click at 1-based position r, column 0: none
    CCM      (position,)  (0,)          (1, 3)                    tau_1, tau_2, tau_3
    DBN      (position,)  (position,)   (1, 1)                    gamma: goes on when not satisfied; SDBN is gamma = 1

Attraction and satisfaction are those of the shown items, in the order of the list; a list may be shorter than the parameters allow.
"""

import numba
import numpy as np

from rankpolicy.kernels.plackett_luce.random_stream import uniform

CASCADE, DCM, PBM, UBM, CCM, DBN = range(6)


@numba.njit(cache=True, nogil=True)
def draw_clicks(kind, attraction, satisfaction, parameters, state, clicks):
    """Fill clicks (position,) with 0 and 1; returns the random state."""
    num_positions = len(attraction)
    last_click = 0
    for k in range(num_positions):
        clicks[k] = 0
    for k in range(num_positions):
        probability = attraction[k]
        if kind == PBM:
            probability *= parameters[0, k]
        elif kind == UBM:
            probability *= parameters[k, last_click]
        state, draw = uniform(state)
        is_clicked = draw < probability
        if is_clicked:
            clicks[k] = 1
            last_click = k + 1
        if kind in (PBM, UBM):
            continue
        going_on = continue_probability(kind, k, is_clicked, attraction, satisfaction, parameters)
        if going_on < 1.0:
            state, draw = uniform(state)
            if draw >= going_on:
                break
    return state


@numba.njit(cache=True, nogil=True)
def continue_probability(kind, k, is_clicked, attraction, satisfaction, parameters):
    """The probability that a user who has examined position k goes on to the next, by whether k was clicked; not for PBM and UBM."""
    if kind == CASCADE:
        return 0.0 if is_clicked else 1.0
    if kind == DCM:
        return 1.0 - parameters[0, k] if is_clicked else 1.0
    if kind == CCM:
        if is_clicked:
            return parameters[0, 1] * (1.0 - attraction[k]) + parameters[0, 2] * attraction[k]
        return parameters[0, 0]
    return (1.0 - satisfaction[k]) * parameters[0, 0] if is_clicked else parameters[0, 0]


@numba.njit(cache=True, nogil=True)
def expected_reward(kind, attraction, satisfaction, parameters):
    """What simulation/users.py calls the expected reward of a list."""
    num_positions = len(attraction)
    total = 0.0
    if kind == UBM:
        last_click = np.zeros(num_positions + 1)  # probability that the last click so far was at this 1-based position
        last_click[0] = 1.0
        for k in range(num_positions):
            clicked = 0.0
            for r in range(k + 1):
                moved = last_click[r] * parameters[k, r] * attraction[k]
                last_click[r] -= moved
                clicked += moved
            last_click[k + 1] = clicked
            total += clicked
        return total
    examined = 1.0
    for k in range(num_positions):
        if kind == PBM:
            total += parameters[0, k] * attraction[k]
        elif kind == DCM:
            total += examined * attraction[k] * parameters[0, k]
            examined *= 1.0 - attraction[k] * parameters[0, k]
        elif kind == DBN:
            total += examined * attraction[k] * satisfaction[k]
            examined *= parameters[0, 0] * (1.0 - attraction[k] * satisfaction[k])
        else:
            total += examined * attraction[k]
            after_click = continue_probability(kind, k, True, attraction, satisfaction, parameters)
            after_none = continue_probability(kind, k, False, attraction, satisfaction, parameters)
            examined *= attraction[k] * after_click + (1.0 - attraction[k]) * after_none
    return total
