"""Clicks over expected clicks, and judgments of click models."""

import numpy as np
import pytest

from rankpolicy.clicks import CLICK_MODELS, fit_click_model, judgments_of, log_from_lists, pair_counts
from rankpolicy.types import RankPolicyError

LOG = log_from_lists(["q"] * 4, [["x", "y"], ["x", "y"], ["x", "y"], ["y", "x"]], [[1, 0], [1, 0], [0, 1], [0, 0]])


def test_coec_by_hand():
    """Click-through .5 at rank 1 and .25 at rank 2. x: 2 clicks, expected 3 (.5) + .25; y: 1 click, expected .5 + 3 (.25)."""
    model = fit_click_model("coec", LOG, prior=None)
    coec = np.array([2 / 1.75, 1 / 1.25])
    np.testing.assert_allclose(model.relevance(), np.minimum(1, coec * 0.5))
    np.testing.assert_allclose(model.parameters["examination"], [1, 0.5])


def test_coec_of_a_random_log_is_clicks_over_expected_clicks():
    rng = np.random.default_rng(0)
    lists = [rng.permutation(list("abcdef"))[:4].tolist() for _ in range(300)]
    clicks = (rng.random((300, 4)) < [0.3, 0.2, 0.15, 0.1]).astype(int).tolist()
    log = log_from_lists(["q"] * 300, lists, clicks)
    _, counts = pair_counts(log)
    rates = counts.clicks.sum(0) / counts.shown.sum(0)
    expected = counts.clicks.sum(1) / (counts.shown @ rates)
    model = fit_click_model("coec", log, prior=None)
    np.testing.assert_allclose(model.relevance(), expected * rates.max())


def test_a_log_without_clicks_has_coec_of_the_prior():
    log = log_from_lists(["q"], [["x", "y"]], [[0, 0]])
    assert fit_click_model("coec", log).relevance() == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("name", [name for name, kind in CLICK_MODELS.items() if "attraction" in kind.axes])
def test_judgments_are_relevances_best_first(name):
    model = fit_click_model(name, LOG)
    (rated,) = judgments_of(model, name="mine", max_rating=4)["judgmentRatings"]
    relevance = dict(zip("xy", model.relevance(), strict=True))
    ratings = {row["docId"]: float(row["rating"]) for row in rated["ratings"]}
    assert ratings == pytest.approx({item: 4 * value for item, value in relevance.items()}, abs=5e-4)
    assert list(ratings.values()) == sorted(ratings.values(), reverse=True)


def test_items_without_a_click_are_rated_0_where_a_log_is_given():
    log = log_from_lists(["q", "q"], [["x", "y"], ["x", "z"]], [[1, 0], [0, 0]])
    model = fit_click_model("pbm", log)
    (rated,) = judgments_of(model, clicked_in=log)["judgmentRatings"]
    assert [row["rating"] for row in rated["ratings"] if row["docId"] != "x"] == ["0.000", "0.000"]
    assert rated["ratings"][0] == judgments_of(model)["judgmentRatings"][0]["ratings"][0] | {"docId": "x"}


def test_models_that_know_no_items_give_no_judgments():
    with pytest.raises(RankPolicyError, match="distinguishes items; rctr does not"):
        judgments_of(fit_click_model("rctr", LOG))
    with pytest.raises(RankPolicyError, match="max_rating"):
        judgments_of(fit_click_model("pbm", LOG), max_rating=0)
