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
