"""Rankers that are measured together are worth what they are worth one by one."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.data import make_fair_synthetic
from rankpolicy.evaluation.policy_value import policy_value, policy_values
from rankpolicy.rankers import exposures
from rankpolicy.rankers.fits import fit_together

TRAIN = make_fair_synthetic(30, random_state=0)
TEST = make_fair_synthetic(20, random_state=1)
MLP = rp.models.MLP(hidden=(8, 6))


def fitted(*rankers):
    fit_together(rankers, [TRAIN] * len(rankers), [None] * len(rankers))
    return rankers


def test_networks_of_one_shape_score_together(monkeypatch):
    parity = rp.fairness.GroupExposure(parity=0.5)
    rankers = fitted(
        rp.FairPGRank(model=MLP, epochs=2, strength=1.0),
        rp.FairPGRank(model=MLP, epochs=2, strength=50.0, num_networks=2),
        rp.FairPGRank(model=MLP, epochs=2, strength=50.0, random_state=1),
        rp.BanditRank(model=MLP, epochs=1, num_networks=1),
        rp.BanditRank(model=MLP, epochs=1, num_networks=1, random_state=1),
        rp.FairPGRank(strength=3.0, fairness=parity, epochs=3),
        rp.FairPGRank(strength=9.0, fairness=parity, epochs=3),
        rp.FairPGRank(model=MLP, epochs=2, strength=5.0),
    )
    assert list(exposures._scoring_together(rankers, 200)) == [[0, 2, 7], [1], [3, 4], [5], [6]]
    weights = 1 / np.arange(1, 11)
    expected = [ranker.exposure(TEST, rank_weights=weights) for ranker in rankers]
    np.testing.assert_allclose(exposures.exposures_of(rankers, TEST, weights), expected, rtol=1e-5)
    monkeypatch.setattr(exposures, "_MOST_ITEMS", 2 * TEST.num_items)
    np.testing.assert_allclose(exposures.exposures_of(rankers, TEST, weights), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "fairness", ["group", "individual", rp.fairness.GroupExposure(amortized=True, merit="exp2", rank_weights="inverse")]
)
def test_values_of_policies(fairness):
    rankers = fitted(*(rp.FairPGRank(strength=strength, epochs=5) for strength in (0.0, 10.0, 100.0)))
    measured = {"reward": "ndcg@5 + 0.1 * dcg", "fairness": fairness}
    found = policy_values(partial(exposures.exposures_of, rankers, TEST), TEST, **measured)
    for ranker, value in zip(rankers, found, strict=True):
        alone = policy_value(ranker, TEST, **measured)
        assert value.utility == pytest.approx(alone.utility, rel=1e-6)
        assert value.disparity == pytest.approx(alone.disparity, rel=1e-5)
        assert value.disparities.left_out == alone.disparities.left_out
        np.testing.assert_allclose(value.exposure, alone.exposure, rtol=1e-6)
        np.testing.assert_array_equal(value.merit, alone.merit)
    assert len({round(value.utility, 4) for value in found}) == 3


@pytest.mark.parametrize("model", ["linear", MLP])
@pytest.mark.parametrize("fairness", ["group", "individual", rp.fairness.GroupExposure(amortized=True)])
def test_reports_of_policies(model, fairness):
    def new():
        settings = {"model": model, "epochs": 3, "fairness": fairness}
        return [rp.FairPGRank(strength=strength, **settings) for strength in (1.0, 30.0)]

    weights = np.random.default_rng(0).uniform(0.5, 2, TRAIN.num_queries)
    for train in (TRAIN, replace(TRAIN, query_weights=weights)):
        rankers = new()
        fit_together(rankers, [train] * 2, [None] * 2)
        for ranker, alone in zip(rankers, new(), strict=True):
            alone.fit(train, progress=False)
            assert ranker.report_["queries_left_out"] == alone.report_["queries_left_out"]
            for name in ("utility", "disparity", "strength"):
                assert ranker.report_[name] == pytest.approx(alone.report_[name], rel=1e-4)
