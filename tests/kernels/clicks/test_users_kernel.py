import itertools

import numpy as np
import pytest

pytest.importorskip("numba")

from rankpolicy.kernels.clicks.users import CASCADE, CCM, DBN, DCM, PBM, UBM, draw_clicks
from rankpolicy.kernels.plackett_luce.random_stream import stream

NUM_SESSIONS = 40_000
ATTRACTION = np.array([0.5, 0.2, 0.9])
SATISFACTION = np.array([0.3, 0.8, 0.6])
EXAMINATION = np.array([[1.0, 0.0, 0.0, 0.0], [0.6, 0.9, 0.0, 0.0], [0.2, 0.5, 0.7, 0.0]])
USERS = {
    "cascade": (CASCADE, np.empty(0), np.empty((0, 0))),
    "dcm": (DCM, np.empty(0), np.array([[0.3, 0.9, 0.5]])),
    "pbm": (PBM, np.empty(0), np.array([[0.9, 0.6, 0.3]])),
    "ubm": (UBM, np.empty(0), EXAMINATION),
    "ccm": (CCM, np.empty(0), np.array([[0.8, 0.6, 0.3]])),
    "dbn": (DBN, SATISFACTION, np.array([[0.85]])),
    "sdbn": (DBN, SATISFACTION, np.array([[1.0]])),
}


def examined_next(name, parameters, k, clicked):
    """By hand from the definitions, kind by kind: examined at k + 1 given examined at k."""
    match name:
        case "cascade":
            return float(not clicked)
        case "dcm":
            return 1 - parameters[0, k] * clicked
        case "ccm":
            tau_1, tau_2, tau_3 = parameters[0]
            return tau_2 * (1 - ATTRACTION[k]) + tau_3 * ATTRACTION[k] if clicked else tau_1
        case _:
            return parameters[0, 0] * (1 - SATISFACTION[k] * clicked)


def probability_of(name, parameters, clicks):
    """P(clicks), summed over all patterns of examination."""
    total = 0.0
    for examined in itertools.product((0, 1), repeat=3):
        probability, last_click = 1.0, 0
        for k in range(3):
            if name == "pbm":
                seen = parameters[0, k]
            elif name == "ubm":
                seen = parameters[k, last_click]
            elif k == 0:
                seen = 1.0
            else:
                seen = examined[k - 1] * examined_next(name, parameters, k - 1, clicks[k - 1])
            probability *= seen if examined[k] else 1 - seen
            clicked = examined[k] * ATTRACTION[k]
            probability *= clicked if clicks[k] else 1 - clicked
            last_click = k + 1 if clicks[k] else last_click
        total += probability
    return total


@pytest.mark.parametrize("name", USERS)
def test_frequencies_match_enumerated_probabilities(name):
    kind, satisfaction, parameters = USERS[name]
    state, clicks, counts = stream(3, 0), np.empty(3, np.int8), np.zeros((2, 2, 2))
    for _ in range(NUM_SESSIONS):
        state = draw_clicks(kind, ATTRACTION, satisfaction, parameters, np.uint64(state), clicks)
        counts[tuple(clicks)] += 1
    expected = np.array([probability_of(name, parameters, c) for c in itertools.product((0, 1), repeat=3)]).reshape(
        2, 2, 2
    )
    assert expected.sum() == pytest.approx(1)
    error = np.sqrt(expected * (1 - expected) / NUM_SESSIONS)
    assert (counts[expected == 0] == 0).all()
    assert (np.abs(counts / NUM_SESSIONS - expected) <= 4 * error + 1e-12).all()


def test_a_list_may_be_shorter_than_the_parameters():
    clicks = np.ones(2, np.int8)
    draw_clicks(DCM, np.array([0.0, 1.0]), np.empty(0), np.array([[1.0, 1.0, 1.0]]), stream(0, 0), clicks)
    assert clicks.tolist() == [0, 1]
