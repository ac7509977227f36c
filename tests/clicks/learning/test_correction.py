"""Weights and estimates that undo position bias, by hand and against simulated users."""

import numpy as np
import pytest

from rankpolicy.clicks import (
    affine_relevance,
    doubly_robust_relevance,
    estimate_position_bias,
    fit_click_model,
    ips_weights,
    log_from_lists,
    make_biased_log,
    pair_counts,
)

CLICKS = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0]])
PROPENSITIES = np.array([1.0, 0.5, 0.1])


def test_item_weights_by_hand():
    """Weights 1, 2 and 10: (1 + 2 + 10)^2 / (1 + 4 + 100)."""
    found = ips_weights(CLICKS, PROPENSITIES)
    np.testing.assert_allclose(found.weights, [[1, 0, 0], [0, 2, 10], [0, 0, 0]])
    assert found.effective_sample_size == pytest.approx(169 / 105)
    assert (found.num_weights, found.num_clipped, found.clipped_share) == (3, 0, 0.0)


def test_query_weights_by_hand():
    """One click: the inverse propensity of its rank; two: their mean, (2 + 10) / 2; none: 0."""
    found = ips_weights(CLICKS, PROPENSITIES, by="query")
    np.testing.assert_allclose(found.weights, [1, 6, 0])
    assert found.effective_sample_size == pytest.approx(49 / 37)


def test_clipping_is_asked_for_and_reported():
    found = ips_weights(CLICKS, PROPENSITIES, clip=4.0)
    np.testing.assert_allclose(found.weights[1], [0, 2, 4])
    assert found.num_clipped == 1
    assert found.clipped_share == pytest.approx(6 / 13)
    assert found.effective_sample_size == pytest.approx(49 / 21)


def test_a_log_counts_its_sessions():
    log = log_from_lists(["q"] * 2, [["x", "y"], ["x"]], [[0, 1], [1]], counts=[3, 2])
    found = ips_weights(log, np.array([1.0, 0.25]))
    np.testing.assert_allclose(found.weights, [[0, 4], [1, 0]])
    assert found.effective_sample_size == pytest.approx((3 * 4 + 2) ** 2 / (3 * 16 + 2))
    assert found.num_weights == 5


def test_equal_propensities_lose_nothing():
    found = ips_weights(CLICKS, np.ones(3))
    assert found.effective_sample_size == pytest.approx(found.num_weights) == 3


def test_sessions_may_have_propensities_of_their_own_and_estimates_may_be_given():
    own = np.array([[0.5, 1, 1], [1, 0.25, 1], [np.nan, np.nan, np.nan]])
    np.testing.assert_allclose(ips_weights(CLICKS, own).weights, [[2, 0, 0], [0, 4, 1], [0, 0, 0]])
    made = make_biased_log(500, propensities=PROPENSITIES, relevance=np.full((2, 3), 0.5), random_state=0)
    bias = estimate_position_bias(made.log, method="randomised", num_resamples=0)
    np.testing.assert_array_equal(ips_weights(made.log, bias).weights, ips_weights(made.log, bias.propensities).weights)


@pytest.mark.parametrize(
    ("clicks", "propensities", "given", "message"),
    [
        (CLICKS, [1.0, -0.5, 0.1], {}, "finite propensity above 0; rank 2 has -0.5"),
        (CLICKS, [1.0, 0.5, 0.0], {}, "finite propensity above 0; rank 3 has 0"),
        (CLICKS, [1.0, 0.5, np.nan], {}, "rank 3 has nan"),
        (CLICKS, [1.0, 0.5], {}, "rank 3 was clicked, and there are 2"),
        (CLICKS, PROPENSITIES, {"by": "session"}, "by 'item' or by 'query'; got 'session'"),
        (CLICKS, PROPENSITIES, {"clip": 0.0}, "clip must be the largest weight, above 0"),
        (CLICKS * 0, PROPENSITIES, {}, "at least one click"),
        (CLICKS * 2, PROPENSITIES, {}, "clicks must be 0 or 1"),
    ],
)
def test_weights_that_cannot_be(clicks, propensities, given, message):
    with pytest.raises(ValueError, match=message):
        ips_weights(clicks, np.array(propensities), **given)


def test_weighted_clicks_are_unbiased():
    """The mean inverse-propensity-weighted click of each pair is its relevance, within four standard errors."""
    relevance = np.array([[0.8, 0.4, 0.2]])
    made = make_biased_log(
        30_000, propensities=PROPENSITIES, relevance=relevance, traffic="rankers", num_rankers=4, random_state=3
    )
    weights = ips_weights(made.log, PROPENSITIES).weights
    for item in range(3):
        own = weights[made.log.items == item]
        assert abs(own.mean() - relevance[0, item]) < 4 * own.std() / np.sqrt(len(own))


def test_affine_correction_is_unbiased_where_plain_weights_are_not():
    """Expectation, exactly: clicks at their mean, alpha r + beta, come back as r; dividing by alpha alone overrates every item."""
    alpha, beta, relevance = np.array([0.6, 0.3]), np.array([0.35, 0.1]), np.array([[0.5, 0.2]])
    mean_clicks = alpha * relevance + beta
    np.testing.assert_allclose(affine_relevance(mean_clicks, alpha, beta), relevance)
    assert (affine_relevance(mean_clicks, alpha, 0 * beta) > relevance).all()
    with pytest.raises(ValueError, match="alpha must be above 0"):
        affine_relevance(CLICKS, np.array([1.0, 0.0, 0.5]), np.zeros(3))
    with pytest.raises(ValueError, match=r"shape \(position,\), \(3,\)"):
        affine_relevance(CLICKS, np.ones(2), np.zeros(2))


SHOWN, CLICKED = np.array([[6.0, 4.0], [0.0, 5.0]]), np.array([[3.0, 1.0], [0.0, 1.0]])


def test_doubly_robust_by_hand():
    """Pair 1: exposure (6 + 4 x 0.5) / 10 = 0.8, foreseen 8 x 0.4 = 3.2, so 0.4 + (4 - 3.2) / 8; pair 2: 0.6 + (1 - 1.5) / 5."""
    found = doubly_robust_relevance(
        SHOWN, CLICKED, np.array([0.4, 0.6]), propensities=np.array([1.0, 0.5]), exposure=np.array([0.8, 1.0])
    )
    np.testing.assert_allclose(found, [0.5, 0.5])


def test_doubly_robust_without_clipping_is_inverse_propensity_weighting():
    for predicted in (np.zeros(2), np.array([0.9, 0.3])):
        found = doubly_robust_relevance(SHOWN, CLICKED, predicted, propensities=np.array([1.0, 0.5]))
        np.testing.assert_allclose(found, [4 / 8, 1 / 2.5])


def test_doubly_robust_is_exact_where_either_part_is():
    """Clicks at their mean: true propensities and exposure correct any prediction; a true prediction stays, whatever the exposure."""
    relevance, propensities, trust = np.array([0.7, 0.3]), np.array([0.9, 0.4]), np.array([0.05, 0.02])
    clicks = SHOWN * (propensities * relevance[:, None] + trust)
    exposure = SHOWN @ propensities / SHOWN.sum(1)
    settings = {"propensities": propensities, "trust": trust}
    wrong = np.array([0.1, 0.9])
    np.testing.assert_allclose(doubly_robust_relevance(SHOWN, clicks, wrong, exposure=exposure, **settings), relevance)
    np.testing.assert_allclose(
        doubly_robust_relevance(SHOWN, clicks, relevance, exposure=0.1 + exposure, **settings), relevance
    )


def test_items_hardly_examined_keep_their_prediction():
    """With few clicks, clipped doubly robust estimates are nearer to the truth than inverse propensity weighting."""
    relevance = np.random.default_rng(0).uniform(0.2, 0.8, (20, 10))
    propensities = 1 / np.arange(1, 11) ** 2
    errors = []
    for seed in range(5):
        made = make_biased_log(
            4000, propensities=propensities, relevance=relevance, traffic="rankers", random_state=seed
        )
        table, counts = pair_counts(made.log)
        model = fit_click_model("pbm", made.log, prior="empirical")
        predicted = model.relevance() * model.parameters["examination"][0]
        truth = relevance[table.queries, table.items]
        by_clip = [
            doubly_robust_relevance(counts.shown, counts.clicks, predicted, propensities=propensities, clip=clip)
            for clip in (None, 0.2)
        ]
        errors.append([np.mean((found - truth) ** 2) for found in by_clip])
    ips, robust = np.mean(errors, 0)
    assert robust < 0.8 * ips


def test_doubly_robust_refuses():
    predicted, propensities = np.array([0.4, 0.6]), np.array([1.0, 0.5])
    with pytest.raises(ValueError, match="one for each of the 2 pairs"):
        doubly_robust_relevance(SHOWN, CLICKED, predicted[:1], propensities=propensities)
    with pytest.raises(ValueError, match="not exceed it"):
        doubly_robust_relevance(CLICKED, SHOWN, predicted, propensities=propensities)
    with pytest.raises(ValueError, match="clip must be the least exposure"):
        doubly_robust_relevance(SHOWN, CLICKED, predicted, propensities=propensities, clip=-1)
    with pytest.raises(ValueError, match="alpha must be above 0"):
        doubly_robust_relevance(SHOWN, CLICKED, predicted, propensities=-propensities)
