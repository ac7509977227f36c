import numpy as np
import pytest

from rankpolicy.clicks import fit_click_model, log_from_lists, make_click_log, make_click_model
from rankpolicy.clicks.models.fit_settings import empirical_prior
from rankpolicy.types import RankPolicyError
from tests.clicks.log.logs import random_log


def test_an_empirical_prior_finds_the_beta_that_rates_were_drawn_from():
    generator = np.random.default_rng(0)
    rates = generator.beta(2.0, 6.0, 5000)
    trials = generator.integers(1, 40, 5000).astype(float)
    a, b = empirical_prior(generator.binomial(trials.astype(int), rates).astype(float), trials)
    assert a / (a + b) == pytest.approx(0.25, abs=5 * np.sqrt(0.25 * 0.75 / 5000))
    assert a + b == pytest.approx(8, rel=0.15)


def test_equal_rates_and_too_few_pairs_have_a_prior_too():
    assert empirical_prior(np.array([3.0]), np.array([10.0])) == (1.0, 1.0)
    a, b = empirical_prior(np.full(50, 5.0), np.full(50, 10.0))
    assert a == pytest.approx(b)
    assert 10 < a < 1e7
    assert all(np.isfinite(empirical_prior(np.zeros(50), np.full(50, 10.0))))


@pytest.mark.parametrize("name", ["dctr", "ubm", "dbn"])
def test_an_empirical_prior_forecasts_better_than_a_flat_one_where_data_are_few(name):
    """400 pairs that each were shown a few times; attraction is small, so (1, 1) pulls it far up."""
    truth = make_click_model(name, num_queries=40, num_items=10, random_state=0)
    shrunk = {**truth.parameters, "attraction": truth.parameters["attraction"] ** 3}
    truth = type(truth)(pairs=truth.pairs, parameters=shrunk, defaults=truth.defaults)
    train, test = make_click_log(truth, 800, random_state=1), make_click_log(truth, 20_000, random_state=2)
    flat, learned = fit_click_model(name, train), fit_click_model(name, train, prior="empirical")
    assert learned.log_likelihood(test) > flat.log_likelihood(test)
    a, b = learned.priors["attraction"]
    assert learned.defaults["attraction"] == a / (a + b)
    assert learned.priors.get("examination", (1.0, 1.0)) == (1.0, 1.0)


def test_without_a_prior_what_was_never_seen_has_the_mean():
    log = log_from_lists(["q"] * 4, [["x", "y"]] * 4, [[1, 0], [1, 0], [1, 1], [0, 0]])
    model = fit_click_model("dctr", log, prior=None)
    assert model.pair_values("attraction", "q", ["x", "new"]).tolist() == [3 / 4, 4 / 8]


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ((1.0,), "prior must be two numbers above 0, 'empirical' or None"),
        ((0.0, 1.0), "prior must be above 0 or None"),
        ((1.0, np.inf), "prior must be a list of numbers or a string or None"),
        ("flat", "Unknown prior 'flat'. Known: empirical"),
        (3, "prior must be a list of numbers or a string or None"),
    ],
)
def test_bad_priors(prior, message):
    with pytest.raises(RankPolicyError, match=message):
        fit_click_model("dctr", random_log(20), prior=prior)


def test_bad_settings():
    for settings, message in [
        ({"iterations": -1}, "iterations must be at least 0; got -1"),
        ({"iterations": 1.5}, "iterations must be a whole number"),
        ({"tolerance": -1e-9}, "tolerance must be at least 0"),
        ({"tolerance": np.nan}, "tolerance must be a number"),
    ]:
        with pytest.raises(RankPolicyError, match=message):
            fit_click_model("ubm", random_log(20), **settings)
    with pytest.raises(RankPolicyError, match="Did you mean 'ubm'"):
        fit_click_model("umb", random_log(20))


def test_em_stops_when_it_gains_too_little():
    log, told = random_log(), []
    model = fit_click_model("ubm", log, tolerance=1e-4, report_iteration=lambda *facts: told.append(facts))
    gains = np.diff(model.objectives) / log.num_sessions
    assert gains[-1] < 1e-4 < gains[-2]
    assert [iteration for iteration, _ in told] == list(range(1, len(model.objectives) + 1))
    assert told[-1][1] == pytest.approx(model.objectives[-1] / log.num_sessions)
