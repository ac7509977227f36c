from dataclasses import replace

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.fairness import group_disparity, penalized_ranking
from rankpolicy.rankers.post_processing.fair_lp import FairLP

TRAIN, TEST = (rp.data.make_fair_synthetic(30, random_state=seed) for seed in (0, 1))
# One feature, which is the label: the regression is exact.
LABELS, GROUPS, SIZES = np.array([3.0, 2.0, 1.0, 4.0, 0.5]), np.array(["a", "b", "a", "b", "a"]), [2, 3]
TOY = rp.from_arrays(LABELS[:, None], LABELS, group=SIZES, protected=GROUPS)


def discounts(size):
    return 1 / np.log2(np.arange(2, size + 2))


def disparity_of(ranker, dataset, merit):
    padding = dataset.padding()
    exposure, merits = (padding.pad(np.array(x)) for x in (ranker.exposure(dataset), merit))
    groups = padding.pad(np.array(dataset.groups))
    return group_disparity(exposure, merits.astype(float), groups, padding.mask)


def test_two_items_share_exposure_as_their_labels():
    ranker = FairLP(strength=100.0, gain="linear").fit(TOY)
    total = 1 + 1 / np.log2(3)
    assert ranker.exposure(TOY)[:2] == pytest.approx([0.6 * total, 0.4 * total])  # merits 3 and 2
    share = (0.6 * total - 1 / np.log2(3)) / (
        1 - 1 / np.log2(3)
    )  # of the first place: share + (1 - share) / log2(3) = 0.6 * total
    first_is_first = ranker.policy(TOY).log_prob(np.array([[0, 1, 2], [0, 1, 2]]))[0]
    assert np.exp(first_is_first) == pytest.approx(share)


def test_exposure_is_that_of_the_linear_programs():
    ranker = FairLP(strength=0.3).fit(TOY)
    weights = np.array([1.0, 0.3, 0.1])
    for start, stop in ((0, 2), (2, 5)):
        labels, gains = LABELS[start:stop], 2 ** LABELS[start:stop] - 1
        ideal = np.sort(gains)[::-1] @ discounts(len(gains))
        fair = penalized_ranking(gains / ideal, GROUPS[start:stop], strength=0.3, merit=labels)
        bias = weights[: stop - start]
        assert ranker.exposure(TOY, rank_weights=weights)[start:stop] == pytest.approx(fair.probabilities @ bias)
        assert ranker.predict(TOY)[start:stop] == pytest.approx(fair.probabilities @ discounts(stop - start))


def test_without_strength_the_policy_sorts_by_relevance():
    ranker = FairLP(strength=0.0).fit(TRAIN)
    regression = rp.Regression(model="linear", scaling="standardize").fit(TRAIN)
    for ours, theirs in zip(ranker.rank(TEST), regression.rank(TEST), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    sampled = ranker.sample(TEST, num_samples=2, random_state=0)
    assert all((rows == ranking).all() for rows, ranking in zip(sampled, ranker.rank(TEST), strict=True))


def test_strength_and_bound_lower_the_disparity_of_the_estimates():
    estimates = rp.Regression(model="linear", scaling="standardize").fit(TRAIN).predict(TEST).clip(min=0)
    strengths = (0.0, 0.2, 100.0)
    disparities = [disparity_of(FairLP(strength=s).fit(TRAIN), TEST, estimates).mean for s in strengths]
    assert disparities[0] > disparities[1] > disparities[2]
    assert disparities[2] == pytest.approx(0, abs=1e-8)
    bounded = disparity_of(FairLP(max_disparity=0.02).fit(TRAIN), TEST, estimates)
    assert bounded.values.max() == pytest.approx(0.02)
    fairest = FairLP(max_disparity=0.0).fit(TRAIN).exposure(TEST)
    np.testing.assert_allclose(fairest, FairLP(strength=100.0).fit(TRAIN).exposure(TEST), atol=1e-7)


def test_scores_on_any_scale_become_labels():
    ranker = FairLP(relevance="rank-svm", relevance_settings={"C": 0.1}).fit(TRAIN)
    scores = rp.RankSVM(C=0.1).fit(TRAIN).predict(TRAIN)
    slope, intercept = np.polyfit(scores, TRAIN.labels, 1)
    np.testing.assert_allclose(ranker._relevances(TRAIN), slope * scores + intercept, rtol=1e-5)
    useless = FairLP().fit(np.ones((4, 1)), [1.0, 0.0, 2.0, 3.0], group=[4])
    assert useless._relevances(TOY[:1]).tolist() == [1.5, 1.5]


def test_estimates_below_zero_merit_nothing_and_keep_their_order():
    ranker = FairLP(strength=100.0).fit(TOY)
    estimates = np.array([[3.0], [-2.0], [-1.0]])
    # The merit of group b is 0, so disparity says nothing of this query.
    (ranking,) = ranker.rank(estimates, group=[3], protected=["a", "b", "b"])
    assert ranking.tolist() == [0, 2, 1]


def test_groups_come_from_the_dataset_an_array_or_a_function():
    ranker = FairLP(strength=0.3).fit(TRAIN)
    expected = ranker.predict(TEST)
    rows = np.random.default_rng(0).permutation(TEST.num_items)
    arrays = {"qid": TEST.query_of_item[rows], "protected": TEST.groups[rows]}
    np.testing.assert_allclose(ranker.predict(TEST.features[rows], **arrays), expected[rows], atol=1e-9)
    by_function = ranker.predict(TEST.features, group=TEST.sizes, protected=lambda dataset: dataset.features[:, 1] == 0)
    np.testing.assert_allclose(by_function, expected, atol=1e-9)
    swapped = ranker.predict(TEST, protected=np.zeros(TEST.num_items))
    np.testing.assert_allclose(swapped, FairLP(strength=0.0).fit(TRAIN).predict(TEST), atol=1e-9)


@pytest.mark.parametrize(
    ("relevance", "settings"),
    [("lambdamart", {"num_trees": 3}), ("pg-rank", "{'epochs': 2, 'model__hidden': [4]}"), ("rank-svm", None)],
)
def test_any_ranker_may_estimate_and_is_saved_with_it(relevance, settings, tmp_path):
    grades = [replace(dataset, labels_by_query=dataset.labels_by_query.round()) for dataset in (TRAIN, TEST)]
    ranker = FairLP(relevance=relevance, relevance_settings=settings).fit(grades[0], valid=grades[1])
    assert list(ranker.evals_result_["valid_0"]) == ["relevance ndcg@10"]
    ranker.save(tmp_path / "model.rp")
    loaded = rp.load(tmp_path / "model.rp")
    np.testing.assert_array_equal(loaded.exposure(TEST), ranker.exposure(TEST))
    assert loaded.get_params() == ranker.get_params()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strength": -1.0}, "strength must be at least 0; got -1"),
        ({"max_disparity": -1.0}, "max_disparity must be at least 0 or None; got -1"),
        ({"relevance": "regresion"}, "Unknown relevance 'regresion'. Did you mean 'regression'"),
        ({"relevance": "fair-lp"}, "Unknown relevance 'fair-lp'. .*Known: pg-rank"),
        ({"relevance_settings": "epochs=3"}, r"must be a dict such as {'model': 'mlp'}; got 'epochs=3'"),
        ({"relevance_settings": {"depth": 3}}, "Regression has no setting 'depth'"),
        ({"gain": "cubic"}, "Unknown gain 'cubic'. Known: exp2, linear"),
        ({"relevance": "lambdamart", "relevance_settings": {"num_trees": 0}}, "num_trees must be at least 1; got 0"),
        ({"strength": 2.0, "max_disparity": 0.1}, "strength=2.0 would not be read: .* max_disparity is None"),
        ({"merit": "beauty"}, "Unknown merit 'beauty'"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        FairLP(**settings)


def test_groups_that_are_missing_are_asked_for():
    ranker = FairLP().fit(TOY)
    for call in (ranker.predict, ranker.rank, ranker.sample, ranker.exposure, ranker.policy):
        with pytest.raises(
            rp.RankPolicyError, match="FairLP ranks by the protected group of every item: pass protected="
        ):
            call(LABELS[:, None], group=SIZES)
