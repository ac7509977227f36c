"""Fairness with rewards that are no sums over items."""

import warnings

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
@pytest.mark.parametrize(
    ("reward", "estimator"),
    [
        *((reward, "reinforce") for reward in ("ap", "mean(ap, rr)", "err", "ap * ndcg", precision_of_first)),
        *((reward, "gumbel") for reward in ("ap", "mean(ap, rr)", "err", "ndcg@5")),
    ],
)
def test_any_metric_trains_and_is_reported(reward, estimator, settings):
    ranker = rp.FairPGRank(reward=reward, estimator=estimator, epochs=2, **settings)
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


@pytest.mark.parametrize("estimator", ["reinforce", "gumbel"])
def test_it_learns(estimator):
    fitted = rp.FairPGRank(reward="ap", estimator=estimator, strength=0.0, epochs=30, learning_rate=0.05)
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


@pytest.mark.parametrize("reward", ["ap * ndcg", precision_of_first])
def test_gumbel_refuses_a_reward_that_is_no_cascade(reward):
    with pytest.raises(rp.RankPolicyError, match=r"estimator 'gumbel' does not work .* these do: reinforce"):
        rp.FairPGRank(reward=reward, estimator="gumbel")


TEXTS = rp.data.from_texts(
    ["red apple", "green tree", "blue sea"] * 4,
    [["apple red fruit", "green car", "tree wood", "red"], ["green leaf", "red apple", "tree", "sea"]] * 6,
    [[1, 0, 0, 1], [1, 0, 1, 0]] * 6,
)
SIDES = np.array(["a", "a", "b", "b"] * 12)


@pytest.mark.parametrize(
    "settings", [{}, {"reward": "ap", "estimator": "gumbel"}, {"reward": "ap", "estimator": "reinforce"}]
)
@pytest.mark.parametrize("bound", [{}, {"max_disparity": 0.05}])
def test_text_networks_learn_fair_policies(settings, bound, tmp_path):
    model = rp.models.MCAN(recurrent=4, hidden=(5,), embedding_size=4, dropout=0.0)
    ranker = rp.FairPGRank(model=model, epochs=3, learning_rate=0.05, **settings, **bound)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three epochs may miss the bound
        ranker.fit(TEXTS, protected=lambda dataset: SIDES, valid=TEXTS, progress=False)
    assert ranker.report_["disparity"] >= 0
    assert ranker.evals_result_
    ranker.save(tmp_path / "model.rp")
    np.testing.assert_allclose(rp.load(tmp_path / "model.rp").predict(TEXTS), ranker.predict(TEXTS), rtol=1e-5)


def test_a_price_lowers_the_disparity_of_a_text_network():
    model = rp.models.MCAN(recurrent=4, hidden=(5,), embedding_size=4, dropout=0.0)
    free, fair = (
        rp.FairPGRank(model=model, epochs=15, learning_rate=0.02, strength=strength).fit(TEXTS, protected=SIDES)
        for strength in (0.0, 100.0)
    )
    assert fair.report_["disparity"] < free.report_["disparity"]
