"""Fairness with rewards that are no sums over items."""

import numpy as np
import pytest

import rankpolicy as rp

DATA = rp.make_web_search(40, items_per_query=(4, 7), num_features=8, random_state=0)
GROUPS = np.where(DATA.features[:, 0] > np.median(DATA.features[:, 0]), "a", "b")


def precision_of_first(rankings, labels, mask):
    return (labels.expand(*rankings.shape[:-1], -1).gather(-1, rankings)[..., 0] > 0).double()


@pytest.mark.parametrize(
    "settings", [{}, {"model": "mlp"}, {"fairness": "individual"}, {"fairness": rp.fairness.GroupExposure(parity=0.5)}]
)
@pytest.mark.parametrize("reward", ["ap", "mean(ap, rr)", "err", "ap * ndcg", precision_of_first])
def test_any_metric_trains_and_is_reported(reward, settings):
    ranker = rp.FairPGRank(reward=reward, estimator="reinforce", epochs=2, **settings)
    protected = None if settings.get("fairness") == "individual" else GROUPS
    ranker.fit(DATA, protected=protected)
    assert 0 <= ranker.report_["utility"] <= 1
    assert ranker.report_["disparity"] >= 0


def test_validation_by_the_objective_and_a_bound():
    def by_first_feature(dataset):
        return np.where(dataset.features[:, 0] > 0, "a", "b")

    ranker = rp.FairPGRank(reward="ap", estimator="reinforce", epochs=3)
    ranker.fit(DATA[:30], valid=DATA[30:], protected=by_first_feature)
    assert len(ranker.evals_result_["valid_0"]["objective"]) == 3
    bounded = rp.FairPGRank(reward="ap", estimator="reinforce", epochs=3, max_disparity=10.0)
    bounded.fit(DATA[:30], protected=by_first_feature)
    assert bounded.report_["disparity"] <= 10


def test_it_learns():
    fitted = rp.FairPGRank(reward="ap", estimator="reinforce", strength=0.0, epochs=30, learning_rate=0.05)
    fitted.fit(DATA, protected=GROUPS)
    chance = rp.evaluate(np.random.default_rng(0).normal(size=DATA.num_items), DATA, "ap").means["ap"]
    assert fitted.report_["utility"] > chance + 0.05


def test_sampled_utility_agrees_with_the_exact_one_where_both_are_known():
    additive = rp.FairPGRank(reward="ndcg", estimator="reinforce", epochs=2).fit(DATA, protected=GROUPS)
    ndcg = rp.metrics.parse_metric("ndcg")
    # As a function it is no sum over items.
    sampled = rp.FairPGRank(reward=lambda *given: ndcg(*given), estimator="reinforce", epochs=2)
    sampled.fit(DATA, protected=GROUPS)
    assert sampled.report_["utility"] == pytest.approx(additive.report_["utility"], abs=0.01)
    assert sampled.report_["disparity"] == pytest.approx(additive.report_["disparity"], rel=0.5)
