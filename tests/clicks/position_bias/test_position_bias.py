"""Estimators of position bias: cases by hand, known propensities, intervals, and what cannot be estimated."""

import json

import numpy as np
import pytest

from rankpolicy.clicks import (
    PositionBias,
    estimate_position_bias,
    fit_click_model,
    log_from_lists,
    make_biased_log,
    pair_counts,
    read_click_log,
)
from rankpolicy.clicks.log.log_pairs import PairCounts
from rankpolicy.clicks.position_bias.harvest import adjacent_curve, bradley_terry_curve, harvested_together
from rankpolicy.clicks.position_bias.model_based import alternating_start, em_step, regression_step
from rankpolicy.clicks.position_bias.randomised import feature_weights
from rankpolicy.types import RankPolicyError

TWO_LISTS = log_from_lists(
    ["q"] * 4, [["x", "y"], ["x", "y"], ["y", "x"], ["y", "x"]], [[1, 1], [1, 0], [0, 1], [1, 0]], counts=[1, 3, 1, 1]
)


def counted(cells):
    """A log of one query from {(item, position): (shown, clicked)}; single items stand alone at their rank."""
    lists, marks, counts = [], [], []
    for (item, position), (shown, clicked) in cells.items():
        for mark, count in ((1, clicked), (0, shown - clicked)):
            if count:
                lists.append([f"filler {item} {position} {place}" for place in range(position)] + [item])
                marks.append([0] * position + [mark])
                counts.append(count)
    return log_from_lists(["q"] * len(lists), lists, marks, counts=counts)


def propensities(log, method, **given):
    return estimate_position_bias(log, method=method, num_resamples=0, **given).propensities


@pytest.mark.parametrize("method", ["pivot", "adjacent", "all-pairs", "em", "click-model"])
def test_the_second_rank_is_examined_half_as_often(method):
    """Item by item, clicks at rank 2 are half those at rank 1; the fillers above them are never clicked. EM stops near the end."""
    log = counted({("x", 0): (10, 6), ("x", 1): (10, 3), ("y", 0): (10, 2), ("y", 1): (10, 1)})
    assert propensities(log, method) == pytest.approx([1.0, 0.5], rel=1e-4 if method == "click-model" else 1e-5)


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("randomised", {}),
        ("randomised-by-segment", {"segments": ["all"] * 4}),
        ("randomised-regression", {"query_features": np.zeros((4, 1))}),
    ],
)
def test_randomised_traffic_by_hand(method, given):
    """Six sessions: clicks at rank 1 are 1 + 3 + 1, at rank 2 they are 1 + 1."""
    assert propensities(TWO_LISTS, method, **given) == pytest.approx([1.0, 2 / 5])


def test_uneven_impressions_do_not_bias_harvesting():
    """x is mostly shown at rank 2, y mostly at rank 1: click-through says 4/9, every pair says 1/2.

    x: 8 of 10 at rank 1 and 36 of 90 at rank 2, counted 10 x 90 / 100 = 9 times: 7.2 against 3.6 clicks.
    """
    log = counted({("x", 0): (10, 8), ("x", 1): (90, 36), ("y", 0): (90, 36), ("y", 1): (10, 2)})
    for method in ("pivot", "adjacent", "all-pairs", "em"):
        assert propensities(log, method) == pytest.approx([1.0, 0.5], rel=1e-5)


def test_one_swapped_pair_by_hand():
    """Ten sessions with a coin between ranks 1 and 3: 4 clicks at rank 1, 1 at rank 3. Those without a coin do not count."""
    lists = [["x", "y", "z"]] * 5 + [["z", "y", "x"]] * 5 + [["x", "y", "z"]] * 9
    clicks = [[1, 1, 0]] * 3 + [[0, 1, 1]] + [[0, 0, 0]] + [[1, 0, 0]] + [[0, 1, 0]] * 4 + [[0, 0, 1]] * 9
    swaps = np.array([[0, 2]] * 10 + [[-1, -1]] * 9)
    found = propensities(log_from_lists(["q"] * 19, lists, clicks), "swaps", swaps=swaps)
    assert found[[0, 2]] == pytest.approx([1.0, 0.25])
    assert np.isnan(found[1])


def test_chains_and_all_pairs_by_hand():
    """Consistent comparisons (propensities 1, 1/2, 1/4) give one answer; without the first rank's links the others stay."""
    matrix = np.array([[[0.0, 8.0, 4.0], [4.0, 0.0, 6.0], [1.0, 3.0, 0.0]]])
    for curve in (adjacent_curve, bradley_terry_curve):
        assert curve(matrix)[0] == pytest.approx([1.0, 0.5, 0.25])
    without = matrix.copy()
    without[0, 0, 2] = without[0, 2, 0] = 0.0
    assert bradley_terry_curve(without)[0] == pytest.approx([1.0, 0.5, 0.25])
    unlinked = without.copy()
    unlinked[0, 1, 2] = unlinked[0, 2, 1] = 0.0
    np.testing.assert_allclose(bradley_terry_curve(unlinked)[0], [1.0, 0.5, np.nan])
    np.testing.assert_allclose(adjacent_curve(unlinked)[0], [1.0, 0.5, np.nan])


def test_contradicting_comparisons_meet_at_the_maximum():
    """At the maximum, each rank wins as many comparisons as it should: the gradient of the likelihood is 0."""
    matrix = np.random.default_rng(0).uniform(1, 9, (2, 4, 4))
    matrix[:, range(4), range(4)] = 0.0
    curve = bradley_terry_curve(matrix)
    chance = curve[:, :, None] / (curve[:, :, None] + curve[:, None, :])
    np.testing.assert_allclose((matrix - (matrix + matrix.swapaxes(1, 2)) * chance).sum(2), 0, atol=1e-8)


def test_all_pairs_ends_at_the_most_likely_curve():
    """Where a click on an item falls, given its impressions, is a multinomial logit, which Newton's method of another module solves."""
    made = make_biased_log(
        20_000,
        propensities=np.array([1.0, 0.5, 0.25, 0.1]),
        relevance=np.random.default_rng(0).uniform(0.2, 0.9, (10, 6)),
        traffic="rankers",
        random_state=3,
    )
    _, counts = pair_counts(made.log)
    most_likely = np.exp(feature_weights(counts.shown, counts.clicks, np.ones((len(counts.shown), 1)))[:, 0])
    # Two rounds of weights end within a hundredth of a standard error, which is 0.007 at rank 2.
    assert propensities(made.log, "all-pairs") == pytest.approx(most_likely, rel=1e-4)


def test_comparisons_of_one_item_at_three_ranks_by_hand():
    """Shown 10, 20 and 30 times with propensities 1, 1/2 and 1/3: the sum of shown x propensity is 10 + 10 + 10 = 30."""
    counts = PairCounts(shown=np.array([[[10.0, 20.0, 30.0]]]), clicks=np.array([[[15.0, 10.0, 5.0]]]))
    found = harvested_together(counts, np.array([[1.0, 1 / 2, 1 / 3]]))
    np.testing.assert_allclose(found[0, 0], [0.0, 1.5 * 15 * 20 / 30, 4 / 3 * 15 * 30 / 30])
    np.testing.assert_allclose(found[0, :, 0], [0.0, 1.5 * 10 * 10 / 30, 4 / 3 * 5 * 10 / 30])


def test_em_step_by_hand():
    """One pair, propensities 1 and 1/2, relevance 1/2: a skip at rank 2 was examined with (1/2 x 1/2) / (1 - 1/4) = 1/3."""
    counts = PairCounts(shown=np.array([[[4.0, 6.0]]]), clicks=np.array([[[2.0, 3.0]]]))
    found, relevance = em_step(counts, (np.array([[1.0, 0.5]]), np.array([[0.5]])))
    np.testing.assert_allclose(found, [[1.0, (3 + 1) / 6]])
    np.testing.assert_allclose(relevance, [[5 / (4 + 4)]])


def test_em_starts_below_certain_relevance():
    """One pair is clicked whenever it is shown: at relevance 1 every skip would be unexamined, and no step could leave it."""
    shown = np.array([[[10.0, 10.0], [10.0, 10.0]]])
    curve, relevance = alternating_start(PairCounts(shown=shown, clicks=shown * np.array([[[1.0], [0.5]]])))
    np.testing.assert_allclose(curve, [[1.0, 1.0]])
    np.testing.assert_allclose(relevance, [[0.99, 0.5]])


def test_em_ends_where_its_step_and_that_of_the_click_model_stand_still():
    made = make_biased_log(
        20_000,
        propensities=np.array([0.9, 0.6, 0.3]),
        relevance=np.array([[0.8, 0.5, 0.2], [0.6, 0.4, 0.3]]),
        random_state=2,
    )
    examination = fit_click_model("pbm", made.log, prior=None, iterations=5000, tolerance=1e-12).parameters[
        "examination"
    ]
    assert propensities(made.log, "em") == pytest.approx(examination / examination[0], rel=1e-4)


def test_regression_em_step_is_a_newton_step_of_logistic_regression():
    """Intercept alone, weight 0: relevance 1/2; all at rank 1, always examined: gradient 3 - 10/2, information 10/4."""
    counts = PairCounts(shown=np.array([[[10.0]]]), clicks=np.array([[[3.0]]]))
    _, weights = regression_step(counts, np.ones((1, 1)), (np.array([[1.0]]), np.zeros((1, 1))))
    np.testing.assert_allclose(weights, [[-0.8]], rtol=1e-6)


def test_dual_learning_by_hand():
    """Clicks exactly as relevance (1/2, 1/4) x propensities (1, 1/2) expects: the truth stands still, and is found."""
    log = log_from_lists(
        ["q"] * 4,
        [["x", "y"], ["x", "y"], ["y", "x"], ["y", "x"]],
        [[1, 0], [0, 1], [1, 0], [0, 1]],
        counts=[4, 1, 2, 2],
    )
    assert propensities(log, "dual") == pytest.approx([1.0, 0.5], rel=1e-5)


def test_dual_learning_stands_few_clicks():
    """Pairs with about two clicks at the last rank: weights by a noisy relevance would put it 17 % too low (0.187 in logarithms).

    What is left, 0.03 in logarithms over many logs, comes from as many parameters as pairs; a mean of 8 logs has a standard error of 0.017.
    """
    truth = np.array([1.0, 0.3, 0.1, 0.03])
    relevance = np.random.default_rng(0).uniform(0.3, 0.9, (100, 4))
    logs = [
        make_biased_log(40_000, propensities=truth, relevance=relevance, traffic="rankers", random_state=seed).log
        for seed in range(8)
    ]
    errors = np.mean([np.log(propensities(log, "dual") / truth) for log in logs], axis=0)
    assert abs(errors[3]) < 0.03 + 4 * 0.017


def test_segments_have_their_own_curves():
    log = log_from_lists(["q"] * 4, [["x", "y"]] * 4, [[1, 0], [1, 1], [1, 0], [0, 1]], counts=[1, 1, 3, 3])
    found = estimate_position_bias(
        log, method="randomised-by-segment", segments=["app", "app", "web", "web"], num_resamples=20
    )
    assert found.by_segment["app"].propensities == pytest.approx([1, 0.5])
    assert found.by_segment["web"].propensities == pytest.approx([1, 1])
    assert found.propensities == pytest.approx([1, 0.25 * 0.5 + 0.75 * 1])
    np.testing.assert_allclose(found.of_segments(["web", "app"]), [[1, 1], [1, 0.5]])
    with pytest.raises(ValueError, match=r"Unknown segment 'wab'\. Did you mean 'web'"):
        found.of_segments(["wab"])


def test_regression_on_query_features_recovers_how_bias_depends_on_them():
    """log propensity_2 = -0.4 + 0.8 x; four standard errors of a log ratio of about 5,000 clicks at each x."""
    generator = np.random.default_rng(0)
    x = np.repeat([-1.0, 0.0, 1.0], 20_000)
    chance = 0.3 * np.exp(np.column_stack([np.zeros(len(x)), -0.4 + 0.8 * x]))
    clicks = (generator.random(chance.shape) < chance).astype(int)
    log = log_from_lists(["q"] * len(x), [["x", "y"]] * len(x), clicks.tolist())
    found = estimate_position_bias(log, method="randomised-regression", query_features=x[:, None], num_resamples=0)
    np.testing.assert_allclose(found.feature_weights, [[0, 0], [-0.4, 0.8]], atol=4 * np.sqrt(2 / 5000))
    np.testing.assert_allclose(found.of_features(np.array([[0.5]])), [[1, np.exp(found.feature_weights[1] @ [1, 0.5])]])
    with pytest.raises(ValueError, match=r"query_features must have the shape \(row, 1\)"):
        found.of_features(np.zeros((3, 2)))


def test_collinear_features_do_not_matter():
    shown, clicks = np.full((2, 2), 50.0), np.array([[20.0, 10.0], [20.0, 5.0]])
    once = feature_weights(shown, clicks, np.array([[1.0, 0.0], [1.0, 1.0]]))
    twice = feature_weights(shown, clicks, np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]))
    np.testing.assert_allclose(once[1], [np.log(0.5), np.log(0.5)], atol=1e-8)
    np.testing.assert_allclose([twice[1, 0], twice[1, 1] + twice[1, 2]], once[1], atol=1e-8)


def test_a_fitted_click_model_is_taken_as_it_is():
    model = fit_click_model("dbn", TWO_LISTS)
    found = estimate_position_bias(TWO_LISTS, method="click-model", click_model=model)
    examination = model.examination(TWO_LISTS)
    np.testing.assert_allclose(found.propensities, examination / examination[0])
    assert found.num_resamples == 0
    assert np.isnan(found.intervals).all()


def test_ranks_that_no_pair_links_are_not_made_up():
    log = counted({("x", 0): (10, 6), ("x", 1): (10, 3), ("y", 2): (50, 20), ("z", 3): (5, 0)})
    for method in ("adjacent", "all-pairs", "em", "click-model"):
        found = estimate_position_bias(log, method=method, num_resamples=20)
        assert found.is_identified.tolist() == [True, True, False, False]
        assert np.isnan(found.intervals[2:]).all()
        assert not np.isnan(found.intervals[:2]).any()


def test_counts_by_pair_and_position_are_enough_for_harvesting(tmp_path):
    (tmp_path / "counts.csv").write_text(
        "query,item,position,impressions,clicks\nq,x,1,10,6\nq,x,2,10,3\nq,y,1,10,2\nq,y,2,10,1\nr,z,1,40,20\nr,z,2,40,10\n"
    )
    log = read_click_log(tmp_path / "counts.csv")
    found = estimate_position_bias(log, method="all-pairs", num_resamples=50)
    assert found.propensities == pytest.approx([1, 0.5])
    assert found.resampled == "queries"
    assert (found.num_sessions, found.num_clicks, found.num_swap_pairs) == (120, 42, 3)
    # Every pair says one half exactly, so that resampling whole pairs or queries moves nothing, and impressions do.
    np.testing.assert_allclose(found.intervals[1], [0.5, 0.5])
    by_pair = estimate_position_bias(log, method="all-pairs", resample="pairs", num_resamples=50)
    np.testing.assert_allclose(by_pair.intervals[1], [0.5, 0.5])
    low, high = estimate_position_bias(log, method="all-pairs", resample="sessions", num_resamples=50).intervals[1]
    assert low < 0.45 < 0.55 < high


def test_json_brings_everything_back():
    found = estimate_position_bias(
        TWO_LISTS, method="randomised-by-segment", segments=["app", "app", "web", "web"], num_resamples=10
    )
    again = PositionBias.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert again.to_dict() == found.to_dict()
    assert list(again.by_segment) == ["app", "web"]
    np.testing.assert_array_equal(again.intervals, found.intervals)
    with pytest.raises(ValueError, match="must be a position bias of version 1"):
        PositionBias.from_dict({"format": "something else"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "all-pair"}, "Did you mean 'all-pairs'"),
        ({"method": "swaps"}, "'swaps' needs swaps"),
        ({"method": "randomised-by-segment"}, "needs segments"),
        ({"method": "all-pairs", "segments": [1] * 4}, "does not use segments"),
        ({"method": "randomised-by-segment", "segments": [1]}, "one name for each of the 4 sessions; got 1"),
        ({"method": "randomised-regression", "query_features": np.full((4, 1), np.nan)}, "finite numbers of shape"),
        (
            {"method": "em", "pair_features": np.zeros((3, 1))},
            r"pair_features must be finite numbers of shape \(2, feature\)",
        ),
        ({"method": "swaps", "swaps": np.full((4, 2), -1)}, "for at least one session; all are -1"),
        ({"method": "swaps", "swaps": np.full((4, 2), 1)}, "two different positions from 0 to 1"),
        ({"method": "swaps", "swaps": np.tile([0, 5], (4, 1))}, "two different positions from 0 to 1"),
        ({"method": "swaps", "swaps": np.zeros((4, 3), int)}, r"whole numbers of shape \(4, 2\)"),
        ({"level": 1.0}, "level must lie between 0 and 1"),
        ({"num_resamples": -1}, "num_resamples be 0 or more"),
        ({"resample": "users"}, "Unknown resample 'users'"),
        ({"resample": "pairs"}, "are not independent"),
        ({"method": "click-model", "click_model": "umb"}, "Did you mean 'ubm'"),
    ],
)
def test_what_cannot_be_asked(given, message):
    with pytest.raises(ValueError, match=message):
        estimate_position_bias(TWO_LISTS, **given)


def test_logs_that_cannot_tell():
    one_ranker = log_from_lists(["q"] * 3, [["x", "y"]] * 3, [[1, 0], [0, 1], [1, 1]])
    for method in ("pivot", "adjacent", "all-pairs", "em", "dual", "click-model"):
        with pytest.raises(ValueError, match="can compare no rank with the first"):
            estimate_position_bias(one_ranker, method=method)
    no_first = log_from_lists(["q"], [["x", "y"]], [[0, 1]])
    with pytest.raises(ValueError, match="the log holds none there"):
        estimate_position_bias(no_first, method="randomised")


@pytest.mark.parametrize("method", ["all-pairs", "pivot", "em", "dual"])
def test_a_log_without_clicks_at_the_first_rank_is_refused(method):
    log = log_from_lists(["q"] * 2, [["x", "y"], ["y", "x"]], [[0, 1], [0, 1]])
    with pytest.raises(RankPolicyError, match=f"'{method}' compares all ranks with the first, which must have clicks"):
        estimate_position_bias(log, method=method)
