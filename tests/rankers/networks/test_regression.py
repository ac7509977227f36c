import numpy as np
import pytest

import rankpolicy as rp

TRAIN, TEST = (rp.data.make_fair_synthetic(20, random_state=seed) for seed in (0, 1))


def least_squares(x, y, weight_decay=0.0):
    """Ridge regression as least squares with more rows, the intercept free."""
    center = x.mean(0)
    rows = np.vstack([x - center, np.sqrt(weight_decay * len(x)) * np.eye(x.shape[1])])
    weights = np.linalg.lstsq(rows, np.concatenate([y - y.mean(), np.zeros(x.shape[1])]), rcond=None)[0]
    return lambda new: (new - center) @ weights + y.mean()


@pytest.mark.parametrize("weight_decay", [0.0, 0.5])
def test_a_linear_model_is_the_least_squares_solution(weight_decay):
    ranker = rp.Regression(model="linear", scaling="none", weight_decay=weight_decay).fit(TRAIN)
    x, y = TRAIN.features.astype(float), TRAIN.labels.astype(float)
    expected = least_squares(x, y, weight_decay)(TEST.features)
    np.testing.assert_allclose(ranker.predict(TEST), expected, rtol=1e-5)
    error = np.square(least_squares(x, y, weight_decay)(x) - y).mean()
    assert ranker.evals_result_["training"]["loss"] == pytest.approx([error], rel=1e-5)


def test_columns_that_say_the_same_do_no_harm():
    doubled = np.hstack([TRAIN.features, TRAIN.features, np.ones((TRAIN.num_items, 1))])
    ranker = rp.Regression(model="linear", scaling="standardize").fit(doubled, TRAIN.labels, group=TRAIN.sizes)
    plain = rp.Regression(model="linear", scaling="none").fit(TRAIN)
    np.testing.assert_allclose(ranker.predict(doubled), plain.predict(TRAIN), rtol=1e-4)


def test_validation_is_measured_and_checkpoints_are_refused(tmp_path):
    ranker = rp.Regression(model="linear").fit(TRAIN, valid=TEST)
    assert ranker.best_score_ == pytest.approx(rp.evaluate(ranker, TEST, ["ndcg@10"]).means["ndcg@10"])
    assert ranker.evals_result_["valid_0"] == {"ndcg@10": [ranker.best_score_]}
    with pytest.raises(rp.RankPolicyError, match="keeps no checkpoints"):
        rp.Regression(model="linear").fit(TRAIN, checkpoint=tmp_path / "c")
