import json
import math
from dataclasses import replace

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.evaluation.policy_value import policy_value
from rankpolicy.fairness import MeritScenarios, fair_policies
from rankpolicy.rankers.post_processing.fair_exposure import FairExposure
from rankpolicy.rankers.post_processing.fairness_curve import FairnessCurve
from rankpolicy.rankers.post_processing.label_model import LabelModel, sample_levels
from rankpolicy.rankers.post_processing.out_of_fold import folds_of_rows, stacking_weights, with_group_features

TRAIN, TEST = (rp.data.make_fair_synthetic(60, random_state=seed) for seed in (0, 1))
LINEAR = {"relevance": ("regression",), "gain": "linear", "num_samples": 50}


def discounts(size):
    return 1 / np.log2(np.arange(2, size + 2))


@pytest.fixture(scope="module")
def fitted():
    return FairExposure(**LINEAR).fit(TRAIN)


def at(ranker, **settings):
    """The fitted ranker with other settings of ranking."""
    ranker.set_params(**{"strength": 1.0, "max_disparity": None, "aim": "group"} | settings)
    value = policy_value(ranker, TEST)
    ranker.set_params(strength=1.0, max_disparity=None, aim="group")
    return value


def test_labels_that_are_known_give_the_policy_of_one_scenario():
    labels = np.array([3.0, 2.0, 1.0, 4.0, 0.5, 2.5, 1.5, 3.5])
    groups, sizes = np.array(list("abababab")), [2, 3, 3]
    data = rp.from_arrays(labels[:, None], labels, group=sizes, protected=groups)
    ranker = FairExposure(relevance=("regression",), strength=0.3, gain="linear", group_feature=False).fit(data)
    exposure = ranker.exposure(data)
    for start, stop in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        y, codes = labels[start:stop], (groups[start:stop] == "b").astype(int)
        bias = discounts(len(y))
        merits = np.array([[y[codes == g].mean() for g in (0, 1)]])
        known = MeritScenarios(merits=merits, probabilities=np.ones(1))
        (policy,) = fair_policies(y / (np.sort(y)[::-1] @ bias), codes, known, strengths=[0.3], bias=bias)
        expected = np.zeros(len(y))
        for ranking, weight in zip(policy.rankings, policy.weights, strict=True):
            expected[ranking] += weight * bias
        assert exposure[start:stop] == pytest.approx(expected, abs=1e-5)


def test_strength_trades_utility_for_disparity_on_new_data(fitted):
    values = [at(fitted, strength=strength) for strength in (0.0, 0.3, 3.0, 100.0)]
    disparities, utilities = [value.disparity for value in values], [value.utility for value in values]
    assert disparities == sorted(disparities, reverse=True)
    assert disparities[-1] < disparities[0] / 10
    assert utilities == sorted(utilities, reverse=True)


def test_equal_exposure_has_no_disparity_whatever_the_labels_are(fitted):
    for settings in ({"aim": "equal_exposure"}, {"max_disparity": 0.0}):
        value = at(fitted, **settings)
        assert np.abs(value.disparities.values).max() < 1e-9
        for start, stop in zip(TEST.offsets[:-1], TEST.offsets[1:], strict=True):
            exposure, groups = value.exposure[start:stop], TEST.groups[start:stop]
            if len(set(groups)) == 2:
                assert exposure[groups == 0].mean() == pytest.approx(exposure[groups == 1].mean())


def test_it_beats_the_linear_program_on_point_estimates(fitted):
    """At no more disparity than the program with the same relevances reaches at all, utility is higher and disparity much lower."""
    program = rp.FairLP(strength=100.0, gain="linear").fit(with_group_features(TRAIN, ["0", "1"]))
    of_program = policy_value(program, with_group_features(TEST, ["0", "1"]))
    ours = at(fitted, strength=10.0)
    assert ours.disparity < of_program.disparity / 2
    assert at(fitted, max_disparity=0.5 * of_program.disparity).utility > of_program.utility - 0.01


def test_the_two_sided_aim_lowers_the_two_sided_disparity(fitted):
    def treatment(**settings):
        fitted.set_params(**settings)
        policy = fitted.policy(TEST)
        fitted.set_params(strength=1.0, aim="group")
        from rankpolicy.rankers.post_processing.fairness_curve import measure_policy

        return measure_policy(policy, TEST, merit="identity", gain="linear")["treatment_difference"]

    assert treatment(aim="two_sided", strength=30.0) < treatment(aim="two_sided", strength=0.0)
    assert treatment(aim="two_sided", strength=30.0) < treatment(aim="group", strength=30.0)


def test_a_wanted_disparity_chooses_the_strength_on_the_curve(fitted):
    curve = fitted.report_["curve"]
    assert curve[0]["strength"] == 0
    assert math.isinf(curve[-1]["strength"])
    assert curve[-1]["disparity"] == pytest.approx(0, abs=1e-12)
    ranker = FairExposure(**LINEAR, max_disparity=0.005).fit(TRAIN)
    chosen = ranker.report_["strength"]
    assert ranker.report_["disparity"] <= 0.005
    lower = [row["disparity"] for row in curve if row["strength"] < chosen]
    assert lower[-1] > 0.005
    assert {"utility", "disparity", "treatment_difference", "exposure_difference", "queries_left_out"} <= set(
        ranker.report_
    )
    assert policy_value(ranker, TEST).disparity < 0.01


def test_the_strength_of_a_wanted_disparity_is_the_lowest_that_keeps_it():
    rows = [
        {"strength": s, "disparity": d, "treatment_difference": 10 * d}
        for s, d in ((0.0, 0.1), (1.0, 0.01), (2.0, 0.02), (3.0, 0.005), (math.inf, 0.0))
    ]
    curve = FairnessCurve.from_rows(rows)
    assert [curve.strength_for(bound) for bound in (0.2, 0.03, 0.015, 0.004, 0.0)] == [
        0.0,
        1.0,
        3.0,
        math.inf,
        math.inf,
    ]
    assert FairnessCurve.from_rows(rows, two_sided=True).strength_for(0.3) == 1.0
    assert FairnessCurve.from_rows(json.loads(json.dumps(curve.to_rows()))) == curve


def test_changed_settings_of_ranking_survive_saving(fitted, tmp_path):
    path = tmp_path / "model.rp"
    fitted.save(path)
    loaded = rp.load(path)
    for settings in ({"strength": 5.0}, {"max_disparity": 0.01}, {"aim": "two_sided"}):
        for ranker in (fitted, loaded):
            ranker.set_params(**{"strength": 1.0, "max_disparity": None, "aim": "group"} | settings)
        np.testing.assert_array_equal(loaded.predict(TEST), fitted.predict(TEST))
    fitted.set_params(strength=1.0, max_disparity=None, aim="group")


@pytest.mark.parametrize("label_model", ["auto", "neighbours", "residuals", "binary"])
def test_binary_labels_and_three_groups(label_model):
    generator = np.random.default_rng(0)
    features = generator.normal(size=(120, 2))
    labels = (features[:, 0] + generator.normal(size=120) > 0).astype(float)
    for num_groups in (2, 3):
        groups = generator.integers(0, num_groups, 120)
        data = rp.from_arrays(features, labels, group=[6] * 20, protected=groups)
        ranker = FairExposure(
            relevance=("regression",), label_model=label_model, num_samples=15, num_folds=2, strength=3.0
        ).fit(data)
        fair, plain = (
            policy_value(r, data) for r in (ranker, FairExposure(relevance=("regression",), strength=0.0).fit(data))
        )
        assert fair.disparity < plain.disparity
        equal = policy_value(ranker.set_params(strength=1.0, aim="equal_exposure"), data)
        assert equal.disparity == pytest.approx(0, abs=1e-7)


def test_an_unknown_group_and_a_query_of_one_group_are_ranked(fitted):
    one = replace(TEST[:1], groups_by_query=np.zeros(10, int))
    order = np.argsort(-fitted._relevances(one), kind="stable")
    assert fitted.rank(one)[0].tolist() == order.tolist()
    unknown = replace(TEST[:1], groups_by_query=np.array(["new", "other"] * 5))
    assert sorted(fitted.rank(unknown)[0].tolist()) == list(range(10))


def test_folds_hold_whole_queries_unless_items_recur():
    folds = folds_of_rows(TRAIN, 5, np.random.default_rng(0))
    assert sorted(np.unique(folds)) == [0, 1, 2, 3, 4]
    assert all(len(np.unique(folds[TRAIN.query_of_item == query])) == 1 for query in range(TRAIN.num_queries))
    drawn = np.random.default_rng(1).integers(0, 12, 60)
    people = np.arange(12.0)[:, None]
    recurring = rp.from_arrays(people[drawn], np.zeros(60) + (drawn > 5), group=[6] * 10)
    folds = folds_of_rows(recurring, 3, np.random.default_rng(0))
    assert all(len(np.unique(folds[drawn == person])) == 1 for person in np.unique(drawn))


def test_quantiles_are_those_of_the_nearest_in_the_group():
    model = LabelModel(
        kind="neighbours",
        predictions=np.array([0.0, 0.1, 0.2, 0.9, 1.0, 5.0]),
        labels=np.array([1.0, 0.0, 2.0, 3.0, 4.0, 9.0]),
        codes=np.array([0, 0, 0, 0, 0, 1]),
        num_neighbours=2,
    )
    levels = np.array([[0.25, 0.75]])
    assert model.quantiles(np.array([0.95]), np.array([0]), levels).tolist() == [[3.0, 4.0]]
    assert model.quantiles(np.array([0.95]), np.array([1]), levels).tolist() == [[9.0, 9.0]]
    errors = replace(model, kind="residuals").quantiles(np.array([0.95]), np.array([0]), levels)
    assert errors[0] == pytest.approx([0.95 + 2.1, 0.95 + 3.0])
    coin = replace(model, kind="binary").quantiles(np.array([0.3, 1.4]), np.array([0, 0]), np.array([[0.65, 0.75]] * 2))
    assert coin.tolist() == [[0.0, 1.0], [1.0, 1.0]]


def test_levels_fill_every_interval_once():
    levels = sample_levels(3, 10, 0)
    np.testing.assert_allclose(np.sort(levels, axis=1), np.tile((np.arange(10) + 0.5) / 10, (3, 1)))
    assert not np.array_equal(levels[0], levels[1])


def test_weights_of_estimators_are_least_squares_and_never_negative():
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(200, 2))
    weights, intercept = stacking_weights(scores, 0.5 * scores[:, 0] + 2 * scores[:, 1] + 3)
    assert (*weights, intercept) == pytest.approx((0.5, 2, 3))
    weights, _ = stacking_weights(scores, scores[:, 0] - scores[:, 1])
    assert weights[1] == 0


def test_the_group_is_a_feature_unless_switched_off():
    seen = with_group_features(TEST, ["0", "1"])
    assert seen.feature_names == ("x1", "x2", "protected group is 0", "protected group is 1")
    np.testing.assert_array_equal(seen.features[:, 3], TEST.groups == 1)
    with_group, without = (
        ((FairExposure(**LINEAR, group_feature=use).fit(TRAIN)._relevances(TEST) - TEST.labels) ** 2).mean()
        for use in (True, False)
    )
    assert with_group < without


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"relevance": ()}, "relevance must name one or more different rankers"),
        ({"relevance": ("fair-lp",)}, "Unknown relevance 'fair-lp'"),
        ({"relevance": ("fair-exposure",)}, "Unknown relevance 'fair-exposure'"),
        ({"relevance_settings": {"rank-svm": {}}}, "by the names of relevance, regression, boosted-regression"),
        ({"relevance_settings": "many"}, "relevance_settings must be a dict such as"),
        ({"relevance_settings": {"regression": {"hiden": 3}}}, "has no setting 'hiden'"),
        ({"aim": "individual"}, "Unknown aim 'individual'"),
        ({"num_folds": 1}, "num_folds must be at least 2"),
    ],
)
def test_wrong_settings_are_refused_when_the_ranker_is_made(settings, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        FairExposure(**settings)


def test_wrong_data_is_refused(fitted):
    with pytest.raises(rp.RankPolicyError, match="the protected group of every item: pass protected="):
        FairExposure().fit(replace(TRAIN, groups_by_query=None))
    with pytest.raises(rp.RankPolicyError, match="FairExposure ranks by the protected group of every item"):
        fitted.rank(replace(TEST, groups_by_query=None))
    with pytest.raises(rp.RankPolicyError, match='label_model="binary" needs labels 0 and 1; got labels up to 5'):
        FairExposure(label_model="binary").fit(TRAIN)
    with pytest.raises(
        rp.RankPolicyError, match="max_disparity with aim='two_sided' needs a ranker that was fitted with that"
    ):
        at(fitted, max_disparity=0.01, aim="two_sided")
    fitted.set_params(strength=1.0, max_disparity=None, aim="group")
    with pytest.raises(rp.RankPolicyError, match="keeps no checkpoints"):
        FairExposure().fit(TRAIN, checkpoint="state.pt")


def test_policies_of_several_strengths_are_those_of_each(fitted):
    policies = fitted.policies(TEST, strengths=[0.0, 0.5, math.inf])
    each = ({"strength": 0.0}, {"strength": 0.5}, {"aim": "equal_exposure"})
    for policy, settings in zip(policies, each, strict=True):
        exposure = TEST.padding().unpad(policy.exposure())
        assert exposure == pytest.approx(at(fitted, **settings).exposure, abs=1e-6)
    with pytest.raises(ValueError, match="strengths must be a list of numbers, 0 or more"):
        fitted.policies(TEST, strengths=[-1.0])


def test_relevances_are_estimates_of_the_labels(fitted):
    errors = fitted.relevances(TEST) - TEST.labels
    assert np.mean(errors**2) < 0.5 * np.var(TEST.labels)


def test_items_of_no_expected_value_keep_the_order_of_their_relevance():
    x = np.tile(np.r_[-9.0, -7.0, -8.0, -6.0, 1.0, 2.0], 8)
    data = rp.from_arrays(x[:, None], (x > 0).astype(float), group=[6] * 8, protected=np.tile(list("abbaab"), 8))
    ranker = FairExposure(relevance=("regression",), strength=0.0, group_feature=False).fit(data)
    assert (ranker.relevances(data) < 0).any()
    assert (np.argsort(-ranker.exposure(data)[:6]) == np.argsort(-x[:6])).all()


def test_a_query_of_one_group_is_ranked_by_relevance():
    generator = np.random.default_rng(0)
    x = generator.normal(size=200)
    labels = (x + generator.normal(size=200) > 0).astype(float)
    data = rp.from_arrays(x[:, None], labels, group=[10] * 20, protected=np.repeat(["a", "b"], 100))
    ranker = FairExposure(relevance=("regression",), group_feature=False).fit(data)
    exposure, relevances = ranker.exposure(data), ranker.relevances(data)
    for start in range(0, 200, 10):
        assert (np.argsort(-exposure[start : start + 10]) == np.argsort(-relevances[start : start + 10])).all()
