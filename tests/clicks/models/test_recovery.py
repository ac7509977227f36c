"""Fitted parameters against the truth they were simulated from; benchmarks/click_recovery.py does it with a million sessions."""

import numpy as np
import pytest

from rankpolicy.clicks import CLICK_MODELS, fit_click_model, make_click_log, make_click_model

PAIRS, POSITIONS = 12, 5
# Parameters that a log can tell: one factor of examination is free, a stop after the last position leaves no trace. coec is not there: it
# is no maximum of the likelihood.
IDENTIFIED = {
    "gctr": 1,
    "rctr": POSITIONS,
    "dctr": PAIRS,
    "pbm": PAIRS + POSITIONS - 1,
    "cm": PAIRS,
    "dcm": PAIRS + POSITIONS - 1,
    "ccm": PAIRS + 3,
    "sdbn": 2 * PAIRS,
    "dbn": 2 * PAIRS + 1,
    "ubm": PAIRS + POSITIONS * (POSITIONS + 1) // 2 - 1,
}


@pytest.mark.parametrize("name", IDENTIFIED)
def test_the_gain_over_the_truth_is_what_chance_gives(name):
    """Twice the log-likelihood ratio of the maximum to the truth is chi-squared with as many degrees of freedom as parameters."""
    freedom = IDENTIFIED[name]
    ratios = []
    for seed in range(4):
        truth = make_click_model(name, random_state=seed)
        log = make_click_log(truth, 20_000, random_state=seed + 10)
        long = {"iterations": 1000, "tolerance": 1e-9} if CLICK_MODELS[name].uses_em else {}
        fitted = fit_click_model(name, log, prior=None, **long)
        ratios.append(2 * (fitted.log_likelihood(log) - truth.log_likelihood(log)))
    z = (np.mean(ratios) - freedom) / np.sqrt(2 * freedom / len(ratios))
    assert abs(z) < 4


@pytest.mark.parametrize(
    ("name", "parameter", "tolerance"),
    [("cm", "attraction", 0.03), ("dcm", "stop", 0.03), ("ccm", "attraction", 0.03), ("dbn", "satisfaction", 0.06)],
)
def test_parameters_come_back(name, parameter, tolerance):
    """Tolerances are five standard errors of a share among as many trials as the rarest item has in 40,000 sessions."""
    truth = make_click_model(name, random_state=1)
    until_the_end = {"tolerance": 1e-9} if CLICK_MODELS[name].uses_em else {}
    fitted = fit_click_model(name, make_click_log(truth, 40_000, random_state=2), prior=None, **until_the_end)
    used = slice(POSITIONS - 1 if parameter == "stop" else None)
    np.testing.assert_allclose(fitted.parameters[parameter][used], truth.parameters[parameter][used], atol=tolerance)


@pytest.mark.parametrize("name", ["dcm", "sdbn"])
def test_the_papers_estimate_is_biased_and_em_is_not(name):
    """Taking the last click for a stop underrates who goes on; that is why EM goes on from it."""
    truth = make_click_model(name, random_state=3)
    log = make_click_log(truth, 40_000, random_state=4)
    approximate = fit_click_model(name, log, prior=None, iterations=0)
    exact = fit_click_model(name, log, prior=None, tolerance=1e-9)
    assert approximate.log_likelihood(log) < truth.log_likelihood(log) < exact.log_likelihood(log)
    parameter = "stop" if name == "dcm" else "satisfaction"
    used = slice(POSITIONS - 1 if name == "dcm" else None)
    wanted = truth.parameters[parameter][used]
    assert (approximate.parameters[parameter][used] > wanted).all()
    assert abs(exact.parameters[parameter][used] - wanted).max() < 0.05
