"""The motivating example of Singh & Joachims (2019), with its numbers, and exposures that a reader can compute by hand."""

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.data import make_job_candidates
from rankpolicy.evaluation.policy_value import SortedPolicy, policy_value
from rankpolicy.fairness import GroupExposure

CANDIDATES = make_job_candidates()
WEIGHTS = 1 / np.log2(np.arange(2, 12))
MALE, FEMALE = CANDIDATES.groups == "male", CANDIDATES.groups == "female"


def test_five_men_of_089_and_five_women_of_088():
    assert CANDIDATES.labels[MALE].tolist() == [0.89] * 5
    assert CANDIDATES.labels[FEMALE].tolist() == [0.88] * 5


def test_sorted_by_relevance_women_have_ranks_6_to_10():
    """Mean exposures 0.5897 and 0.3190, so D = 0.5897 / 0.89 - 0.3190 / 0.88 = 0.3001."""
    ranker = rp.Regression(model="linear").fit(CANDIDATES)
    assert sorted(ranker.rank(CANDIDATES)[0][5:].tolist()) == np.flatnonzero(FEMALE).tolist()
    value = policy_value(SortedPolicy(ranker), CANDIDATES)
    male, female = WEIGHTS[:5].mean(), WEIGHTS[5:].mean()
    assert (round(male, 4), round(female, 4)) == (0.5897, 0.319)
    assert value.utility == pytest.approx(1.0)
    assert value.disparity == pytest.approx(male / 0.89 - female / 0.88)
    assert round(value.disparity, 4) == 0.3001


@pytest.mark.parametrize(
    ("ranker", "tolerance"),
    [
        (rp.FairPGRank(strength=1.0), 1e-3),
        *((rp.FairPGRank(max_disparity=0.0, random_state=seed), 1e-3) for seed in range(3)),
        (rp.FairLP(strength=1.0), 1e-6),
    ],
)
def test_exposure_in_proportion_to_relevance_costs_two_thousandths(ranker, tolerance):
    """The exposure of all, 4.5436, is shared as 0.89 to 0.88."""
    value = policy_value(ranker.fit(CANDIDATES), CANDIDATES)
    share = WEIGHTS.sum() / 5 / (0.89 + 0.88)
    assert value.exposure[MALE].mean() == pytest.approx(0.89 * share, abs=tolerance)
    assert value.exposure[FEMALE].mean() == pytest.approx(0.88 * share, abs=tolerance)
    assert value.disparity == pytest.approx(0.0, abs=3 * tolerance)
    assert value.utility > 0.997


def test_clicks_in_proportion_to_relevance_are_equal_exposure():
    """Clicks are exposure times relevance, so clicks per merit are exposure."""
    ranker = rp.FairPGRank(fairness=GroupExposure(impact=True), strength=1.0).fit(CANDIDATES)
    value = policy_value(ranker, CANDIDATES, fairness=GroupExposure(impact=True))
    assert value.exposure[MALE].mean() == pytest.approx(value.exposure[FEMALE].mean(), abs=1e-3)
    assert value.disparity == pytest.approx(0.0, abs=1e-3)
    sorted_value = policy_value(SortedPolicy(ranker), CANDIDATES, fairness=GroupExposure(impact=True))
    assert sorted_value.disparity == pytest.approx(WEIGHTS[:5].mean() - WEIGHTS[5:].mean())


def test_a_measured_position_bias_weighs_ranks():
    """Users who look at five ranks alike never see the women."""
    aim = GroupExposure(rank_weights=[1.0] * 5)
    value = policy_value(SortedPolicy(rp.Regression(model="linear").fit(CANDIDATES)), CANDIDATES, fairness=aim)
    assert value.exposure.tolist() == [1.0] * 5 + [0.0] * 5
    assert value.disparity == pytest.approx(1 / 0.89)
    fair = rp.FairPGRank(fairness=aim, strength=1.0).fit(CANDIDATES)
    share = 5 / 5 / (0.89 + 0.88)
    assert policy_value(fair, CANDIDATES, fairness=aim).exposure[MALE].mean() == pytest.approx(0.89 * share, abs=1e-3)
