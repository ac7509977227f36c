"""Each click model on numbers a reader can redo by hand."""

import numpy as np
import pytest

from rankpolicy.clicks import CLICK_MODELS, fit_click_model, log_from_lists
from rankpolicy.clicks.log.log_pairs import pairs_of

LISTS = [["x", "y", "z"]]


def model_of(name, **parameters):
    """A model of one query q and the items x, y, z with these parameters."""
    log = log_from_lists(["q"], LISTS, [[0, 0, 0]])
    arrays = {parameter: np.array(values, np.float64) for parameter, values in parameters.items()}
    return CLICK_MODELS[name](pairs=pairs_of(log), parameters=arrays, defaults=dict.fromkeys(arrays, 0.5))


def conditional(model, clicks):
    return model.conditional_click_probabilities(log_from_lists(["q"], LISTS, [clicks]))[0]


def unconditional(model):
    return model.click_probabilities(log_from_lists(["q"], LISTS, [[0, 0, 0]]))[0]


LOG = log_from_lists(["q"] * 4, [["x", "y"], ["x", "y"], ["y", "x"], ["x"]], [[1, 0], [1, 1], [0, 0], [0]])


def test_click_through_rates():
    assert fit_click_model("gctr", LOG, prior=None).parameters["rate"] == [3 / 7]
    np.testing.assert_allclose(fit_click_model("rctr", LOG, prior=None).parameters["rate"], [2 / 4, 1 / 3])
    np.testing.assert_allclose(fit_click_model("dctr", LOG, prior=None).parameters["attraction"], [2 / 4, 1 / 3])
    np.testing.assert_allclose(fit_click_model("dctr", LOG).parameters["attraction"], [3 / 6, 2 / 5])
    assert fit_click_model("dctr", LOG, prior=None).log_likelihood(LOG) == pytest.approx(
        4 * np.log(1 / 2) + np.log(1 / 3) + 2 * np.log(2 / 3)
    )


def test_cascade():
    """y counts only where x above it was not clicked: shown once, at the top of the third list."""
    model = fit_click_model("cm", LOG, prior=None)
    np.testing.assert_allclose(model.parameters["attraction"], [2 / 4, 0 / 1])
    model = model_of("cm", attraction=[0.5, 0.4, 0.2])
    np.testing.assert_allclose(conditional(model, [0, 1, 0]), [0.5, 0.4, 0])
    np.testing.assert_allclose(unconditional(model), [0.5, 0.5 * 0.4, 0.5 * 0.6 * 0.2])
    twice = log_from_lists(["q"], LISTS, [[1, 1, 0]])
    assert model.log_likelihood(twice) == -np.inf
    assert model.user_of("q", ["z", "x"]).attraction.tolist() == [0.2, 0.5]


def test_dependent_click():
    model = model_of("dcm", attraction=[0.5, 0.4, 0.2], stop=[0.6, 0.1, 0.3])
    # After a click 0.4 go on; one skip of 0.4 leaves 0.4 x 0.6 / (1 - 0.4 x 0.4) of them examining.
    np.testing.assert_allclose(conditional(model, [1, 0, 0]), [0.5, 0.4 * 0.4, 0.24 / 0.84 * 0.2])
    np.testing.assert_allclose(conditional(model, [0, 1, 0]), [0.5, 0.4, 0.9 * 0.2])
    np.testing.assert_allclose(unconditional(model), [0.5, 0.7 * 0.4, 0.7 * 0.96 * 0.2])
    user = model.user_of("q", ["y", "x"])
    assert (user.kind, user.attraction.tolist(), user.parameters["stop"].tolist()) == ("dcm", [0.4, 0.5], [0.6, 0.1])


def test_dependent_click_of_the_paper():
    """Guo, Liu & Wang: clicks / shown down to the last click; last clicks / clicks at each position."""
    model = fit_click_model("dcm", LOG, prior=None, iterations=0)
    np.testing.assert_allclose(model.parameters["attraction"], [2 / 4, 1 / 2])
    np.testing.assert_allclose(model.parameters["stop"], [1 / 2, 1])


def test_simplified_dbn_of_the_paper():
    """Chapelle & Zhang, algorithm 1: the same attraction; last clicks / clicks of each item."""
    model = fit_click_model("sdbn", LOG, prior=None, iterations=0)
    np.testing.assert_allclose(model.parameters["attraction"], [2 / 4, 1 / 2])
    np.testing.assert_allclose(model.parameters["satisfaction"], [1 / 2, 1])
    np.testing.assert_allclose(model.relevance(), [1 / 4, 1 / 2])


def test_dynamic_bayesian():
    model = model_of("dbn", attraction=[0.5, 0.4, 0.2], satisfaction=[0.6, 0.1, 0.3], continuation=[0.8])
    np.testing.assert_allclose(conditional(model, [1, 1, 0]), [0.5, 0.4 * 0.8 * 0.4, 0.9 * 0.8 * 0.2])
    np.testing.assert_allclose(conditional(model, [0, 0, 0]), [0.5, 0.8 * 0.4, 0.8 * (0.8 * 0.6 / 0.68) * 0.2])
    np.testing.assert_allclose(unconditional(model)[1], 0.8 * (1 - 0.5 * 0.6) * 0.4)
    np.testing.assert_allclose(model.relevance(), [0.3, 0.04, 0.06])


def test_a_step_of_dynamic_bayesian():
    """x clicked, y below not: from 1/2 everywhere P(y examined) = (1/4 x 1/2) / (3/4 + 1/4 x 1/2) = 1/7, P(satisfied) = 6/7 x 2/3."""
    log = log_from_lists(["q"], [["x", "y"]], [[1, 0]])
    model = fit_click_model("dbn", log, prior=None, iterations=1)
    np.testing.assert_allclose(model.parameters["attraction"], [1, 0])
    np.testing.assert_allclose(model.parameters["satisfaction"], [4 / 7, 1 / 2])
    np.testing.assert_allclose(model.parameters["continuation"], [(1 / 7) / (3 / 7)])
    assert model.objectives == pytest.approx([np.log(1 / 2 * (3 / 4 + 1 / 4 * 1 / 2))])


def test_click_chain():
    model = model_of("ccm", attraction=[0.5, 0.4, 0.2], continuation=[0.9, 0.8, 0.3])
    np.testing.assert_allclose(conditional(model, [1, 1, 0])[1:], [0.55 * 0.4, (0.8 * 0.6 + 0.3 * 0.4) * 0.2])
    np.testing.assert_allclose(conditional(model, [0, 1, 0])[1], 0.9 * 0.4)


def test_a_step_of_click_chain():
    """As above, P(went on) = (1/2 x 1/2) / (1/2 + 1/2 x 1/2) = 1/3; half of the clicks prove good, of both kinds a third goes on."""
    log = log_from_lists(["q"], [["x", "y"]], [[1, 0]])
    model = fit_click_model("ccm", log, prior=None, iterations=1)
    np.testing.assert_allclose(model.parameters["attraction"], [(1 + 1 / 2) / 2, 0])
    np.testing.assert_allclose(model.parameters["continuation"], [1 / 2, 1 / 3, 1 / 3])


def test_a_step_of_position_based():
    """From 1/2 everywhere, P(examined | not clicked) = 1/4 / (3/4) = 1/3."""
    log = log_from_lists(["q", "q"], [["x"], ["x"]], [[1], [0]])
    model = fit_click_model("pbm", log, prior=None, iterations=1)
    np.testing.assert_allclose(model.parameters["attraction"], [1 / (1 + 1 / 3)])
    np.testing.assert_allclose(model.parameters["examination"], [(1 + 1 / 3) / 2])
    with_prior = fit_click_model("pbm", log, iterations=1)
    np.testing.assert_allclose(with_prior.parameters["examination"], [(1 + 1 + 1 / 3) / (2 + 2)])


def test_user_browsing():
    examination = [[0.9, 0, 0, 0], [0.6, 0.8, 0, 0], [0.3, 0.4, 0.7, 0]]
    model = model_of("ubm", attraction=[0.5, 0.4, 0.2], examination=examination)
    np.testing.assert_allclose(conditional(model, [1, 0, 0]), [0.45, 0.8 * 0.4, 0.4 * 0.2])
    np.testing.assert_allclose(conditional(model, [0, 1, 0]), [0.45, 0.6 * 0.4, 0.7 * 0.2])
    np.testing.assert_allclose(unconditional(model)[1], 0.45 * 0.32 + 0.55 * 0.24)
    assert model.user_of("q", ["z", "x"]).parameters["examination"].tolist() == [[0.9, 0, 0], [0.6, 0.8, 0]]


def test_examination_is_the_position_effect():
    log = log_from_lists(["q"], LISTS, [[0, 0, 0]])
    np.testing.assert_allclose(
        model_of("pbm", attraction=[0.5, 0.4, 0.2], examination=[0.9, 0.5, 0.1]).examination(log), [0.9, 0.5, 0.1]
    )
    np.testing.assert_allclose(model_of("cm", attraction=[0.5, 0.4, 0.2]).examination(log), [1, 0.5, 0.3])
    np.testing.assert_allclose(model_of("rctr", rate=[0.5, 0.2, 0.1]).examination(log), [0.5, 0.2, 0.1])
    np.testing.assert_allclose(model_of("gctr", rate=[0.5]).examination(log), [1, 1, 1])
