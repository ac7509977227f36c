from dataclasses import replace

import numpy as np
import pytest

import rankpolicy as rp

DATA = rp.make_web_search(60, random_state=3)
TRAIN, VALID = DATA[:40], DATA[40:]


def test_it_is_lightgbms_lambdarank():
    lightgbm = pytest.importorskip("lightgbm")
    ours = rp.LambdaMART(num_trees=7, random_state=4).fit(TRAIN)
    parameters = ours._parameters()
    booster = lightgbm.train(parameters, lightgbm.Dataset(TRAIN.features, TRAIN.labels, group=TRAIN.sizes), 7)
    np.testing.assert_allclose(ours.predict(VALID), booster.predict(VALID.features))


def test_early_stopping_keeps_the_best_tree():
    ranker = rp.LambdaMART(num_trees=60, patience=5).fit(TRAIN, valid=VALID)
    curve = ranker.evals_result_["valid_0"]["ndcg@10"]
    assert len(curve) <= ranker.best_iteration_ + 5
    assert ranker.best_iteration_ == int(np.argmax(curve)) + 1


def test_fractional_labels_are_refused():
    with pytest.raises(rp.RankPolicyError, match=r"whole-number labels from 0 to 30; got 0.5"):
        rp.LambdaMART().fit([[1.0], [2.0]], [0.5, 1], group=[2])


def test_without_early_stopping_the_best_tree_is_kept_too():
    ranker = rp.LambdaMART(num_trees=40, patience=None).fit(TRAIN, valid=VALID)
    curve = ranker.evals_result_["valid_0"]["ndcg@10"]
    assert len(curve) == 40
    assert ranker.best_score_ == max(curve) == curve[ranker.best_iteration_ - 1]
    assert rp.evaluate(ranker, VALID, ["ndcg@10"]).means["ndcg@10"] == pytest.approx(max(curve))


def test_it_learns_from_relevances_estimated_from_clicks():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    grades = rp.data.from_arrays(X, np.floor(3 * X[:, 0]), qid=np.repeat(np.arange(30), 10))
    settings = {"num_trees": 10, "min_items_in_leaf": 5, "random_state": 0}
    by_lightgbm = rp.LambdaMART(**settings).fit(grades, progress=False)
    ours = rp.LambdaMART(**settings).fit(replace(grades, label_kind="relevances"), progress=False)
    np.testing.assert_allclose(ours.predict(grades), by_lightgbm.predict(grades), atol=1e-4)
    relevances = replace(grades, labels_by_query=(0.6 * X[:, 0]).astype(np.float32), label_kind="relevances")
    ranker = rp.LambdaMART(**settings).fit(relevances, valid=relevances, progress=False)
    assert rp.evaluate(ranker, grades, ["ndcg@10"]).means["ndcg@10"] > 0.95
    too_large = replace(relevances, labels_by_query=np.linspace(0, 31, 300, dtype=np.float32)[::-1])
    with pytest.raises(rp.RankPolicyError, match="relevances from 0 to 30; got 31"):
        rp.LambdaMART(**settings).fit(too_large, progress=False)
