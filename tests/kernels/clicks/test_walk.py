"""The walk down a list, for every kind of user, against probabilities that are enumerated from its definition."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from rankpolicy.kernels.clicks.walk import Walk, draw_clicks, random_source
from rankpolicy.simulation import cascade_user, ccm_user, dbn_user, dcm_user, pbm_user, sdbn_user, ubm_user

NUM_SESSIONS = 40_000
ATTRACTION = np.array([0.5, 0.2, 0.9])
SATISFACTION = np.array([0.3, 0.8, 0.6])
EXAMINATION = np.array([[1.0, 0.0, 0.0, 0.0], [0.6, 0.9, 0.0, 0.0], [0.2, 0.5, 0.7, 0.0]])
USERS = {
    "cascade": (cascade_user(ATTRACTION), np.empty((0, 0))),
    "dcm": (dcm_user(ATTRACTION, [0.3, 0.9, 0.5]), np.array([[0.3, 0.9, 0.5]])),
    "pbm": (pbm_user(ATTRACTION, [0.9, 0.6, 0.3]), np.array([[0.9, 0.6, 0.3]])),
    "ubm": (ubm_user(ATTRACTION, EXAMINATION), EXAMINATION),
    "ccm": (ccm_user(ATTRACTION, [0.8, 0.6, 0.3]), np.array([[0.8, 0.6, 0.3]])),
    "dbn": (dbn_user(ATTRACTION, SATISFACTION, 0.85), np.array([[0.85]])),
    "sdbn": (sdbn_user(ATTRACTION, SATISFACTION), np.array([[1.0]])),
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
    user, parameters = USERS[name]
    walk, source, clicks, counts = user.walk([0, 1, 2]), random_source(3, 0), np.empty(3, np.int8), np.zeros((2, 2, 2))
    for _ in range(NUM_SESSIONS):
        source = np.uint64(draw_clicks(walk, source, clicks))
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
    walk = dcm_user([0.0, 1.0], [1.0, 1.0, 1.0]).walk([0, 1])
    draw_clicks(walk, random_source(0, 0), clicks)
    assert clicks.tolist() == [0, 1]
    draw_clicks(Walk(np.ones(2), np.ones((3, 1)), np.zeros(2), 1.0), random_source(0, 0), clicks)
    assert clicks.tolist() == [1, 0]


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import rankpolicy.kernels
rankpolicy.kernels.HAS_NUMBA = False
import numpy as np
from rankpolicy.clicks import make_click_log, make_click_model
from rankpolicy.simulation import dcm_user, draw_clicks, expected_reward
model = make_click_model("ubm", random_state=0)
log = make_click_log(model, 400, random_state=1)
print(repr(model.log_likelihood(log) / model.log_likelihood(make_click_log(model, 400, random_state=2))))
print(repr(expected_reward(dcm_user([0.5, 0.2], [0.8, 0.5]), [0, 1])))
print(draw_clicks(dcm_user([1.0, 1.0], [1.0, 0.0]), [0, 1], np.random.default_rng(0)).tolist())
"""


def test_without_numba_the_same_functions_run_as_plain_python():
    """A ratio of two log-likelihoods of 400 sessions, about 1; the reward 1 - (1 - 0.4) (1 - 0.1); a sure click that satisfies."""
    ran = subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, check=True)
    likelihoods, reward, clicks = ran.stdout.splitlines()
    assert float(likelihoods) == pytest.approx(1, abs=0.2)
    assert float(reward) == pytest.approx(0.46)
    assert clicks == "[1, 0]"
