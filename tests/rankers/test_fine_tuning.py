"""``fit(data, init=ranker)``: networks and trees are trained further, with the scaling kept."""

from dataclasses import replace

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.rankers import RANKERS

OLD, NEW = rp.make_web_search(40, random_state=1), rp.make_web_search(20, random_state=2)
SHIFTED = replace(
    NEW, features_by_query=NEW.features_by_query * 3 + 10
)  # other spreads and means: a scaling fitted on it would differ

NETWORKS = {
    "pg-rank": {"epochs": 2, "num_networks": 2},
    "listnet": {"epochs": 2},
    "bandit-rank": {"epochs": 2, "num_networks": 1},
    "regression": {"epochs": 2},
    "fair-pg-rank": {"epochs": 2, "fairness": "individual"},
    "matching-cross": {"epochs": 2, "model": "mlp"},
}
TREES = {name: {"num_trees": 4} for name in ("lambdamart", "boosted-policy", "boosted-regression")}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_continues_with_its_weights_and_scaling(name, tmp_path):
    first = RANKERS[name](**NETWORKS[name]).fit(OLD)
    before = first.predict(NEW)
    first.save(tmp_path / "first.rp")
    tiny = {} if name == "fair-pg-rank" else {"learning_rate": 1e-12}
    if tiny:
        frozen = RANKERS[name](**NETWORKS[name] | tiny).fit(SHIFTED, init=first)
        np.testing.assert_allclose(frozen.predict(NEW), before, rtol=1e-4, atol=1e-5)
    tuned = RANKERS[name](**NETWORKS[name]).fit(SHIFTED, init=rp.load(tmp_path / "first.rp"))
    assert not np.allclose(tuned.predict(NEW), before)
    assert tuned._inputs.files() == first._inputs.files()
    np.testing.assert_array_equal(first.predict(NEW), before)
    tuned.save(tmp_path / "tuned.rp")
    np.testing.assert_array_equal(rp.load(tmp_path / "tuned.rp").predict(NEW), tuned.predict(NEW))


@pytest.mark.parametrize("name", TREES)
def test_trees_are_added_to_those_that_were_grown(name, tmp_path):
    first = RANKERS[name](**TREES[name]).fit(OLD)
    before = first.predict(NEW)
    first.save(tmp_path / "first.rp")
    tuned = RANKERS[name](**TREES[name] | {"num_trees": 3}).fit(NEW, init=rp.load(tmp_path / "first.rp"))
    assert tuned.best_iteration_ == 7
    np.testing.assert_allclose(tuned._booster.predict(NEW.features, num_iteration=4), before, rtol=1e-6)
    assert not np.allclose(tuned.predict(NEW), before)
    np.testing.assert_array_equal(first.predict(NEW), before)
    tuned.save(tmp_path / "tuned.rp")
    np.testing.assert_array_equal(rp.load(tmp_path / "tuned.rp").predict(NEW), tuned.predict(NEW))
    # Validation starts from the scores of the trees that are there, and only the best ones of them are kept.
    stopped = RANKERS[name](**TREES[name] | {"num_trees": 30, "patience": 2}).fit(OLD, valid=NEW)
    again = RANKERS[name](**TREES[name] | {"num_trees": 30, "patience": 2}).fit(NEW, valid=OLD, init=stopped)
    ((_, curve),) = again.evals_result_["valid_0"].items()
    assert again.best_iteration_ == stopped.best_iteration_ + int(np.argmax(curve)) + 1
    measured = rp.evaluate(again, OLD, ["ndcg@10"]).means["ndcg@10"]
    assert again.best_score_ == pytest.approx(measured, abs=1e-6)


def test_fine_tuning_starts_ahead_of_a_new_ranker():
    valid = rp.make_web_search(40, random_state=3)
    first = rp.ListNet(epochs=15).fit(OLD)
    afresh = rp.ListNet(epochs=1).fit(NEW, valid=valid)
    tuned = rp.ListNet(epochs=1).fit(NEW, valid=valid, init=first)
    assert tuned.best_score_ > afresh.best_score_


def test_another_objective_may_continue_from_a_network():
    first = rp.Regression(epochs=2).fit(OLD)
    tuned = rp.PGRank(epochs=1, num_networks=1, learning_rate=1e-12).fit(SHIFTED, init=first)
    np.testing.assert_allclose(tuned.predict(NEW), first.predict(NEW), rtol=1e-4, atol=1e-5)


def test_what_cannot_be_continued_is_named():
    mlp, trees = rp.ListNet(epochs=1).fit(OLD), rp.LambdaMART(num_trees=2).fit(OLD)
    narrow = replace(NEW, features_by_query=NEW.features_by_query[:, 1:])
    for call, message in (
        (lambda: rp.ListNet(epochs=1).fit(NEW, init=trees), "init must be a fitted ranker over a network"),
        (lambda: rp.ListNet(epochs=1).fit(NEW, init="model.rp"), r"got str\. Pass the ranker itself"),
        (lambda: rp.ListNet(epochs=1).fit(NEW, init=rp.ListNet()), "not fitted yet"),
        (lambda: rp.ListNet(epochs=1, scaling="none").fit(NEW, init=mlp), "must have the same scaling"),
        (lambda: rp.ListNet(epochs=1, num_networks=2).fit(NEW, init=mlp), "must have the same num_networks"),
        (
            lambda: rp.ListNet(epochs=1, model=rp.models.MLP(hidden=(8,))).fit(NEW, init=mlp),
            "must have the same model",
        ),
        (lambda: rp.ListNet(epochs=1).fit(narrow, init=mlp), "to continue from init, must have the"),
        (lambda: rp.LambdaMART(num_trees=1).fit(narrow, init=trees), "to continue from init, must have the"),
        (lambda: rp.BoostedRegression(num_trees=1).fit(NEW, init=trees), "init must be a fitted BoostedRegression"),
        (lambda: rp.RankSVM().fit(NEW, init=rp.RankSVM().fit(OLD)), "RankSVM cannot continue from a fitted ranker"),
        (lambda: rp.Regression(model="linear").fit(NEW, init=mlp), "solved for, not trained"),
    ):
        with pytest.raises(rp.RankPolicyError, match=message):
            call()
