"""Trees on stored features are grown without LightGBM, and are the trees that LightGBM would grow."""

import math

import numpy as np
import pytest

pytest.importorskip("numba")
lightgbm = pytest.importorskip("lightgbm")

import rankpolicy as rp  # noqa: E402
from rankpolicy.kernels.trees import best_split, lambda_gradients  # noqa: E402
from rankpolicy.rankers.trees import boosting, streamed  # noqa: E402
from rankpolicy.rankers.trees.boosted_policy import BoostedPolicy  # noqa: E402
from rankpolicy.rankers.trees.boosted_regression import BoostedRegression  # noqa: E402
from rankpolicy.types import RankPolicyError  # noqa: E402

RANKERS = (rp.LambdaMART, BoostedRegression, BoostedPolicy)
ALL = {"feature_fraction": 1.0, "bagging_fraction": 1.0}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Queries on disk, with missing values in two features."""
    folder = tmp_path_factory.mktemp("stored")
    made = rp.make_web_search(600, items_per_query=(5, 20), num_features=12, random_state=0)
    features = np.array(made.features)
    features[::7, 3] = features[::3, 5] = np.nan
    whole = rp.data.from_arrays(features, made.labels, qid=np.repeat(np.arange(made.num_queries), made.sizes))
    rp.data.write_parquet(whole, folder / "data.parquet")
    return rp.scan_parquet(folder / "data.parquet", cache=folder / "cache", progress=False)


def by_lightgbm(monkeypatch):
    monkeypatch.setattr(boosting, "can_be_streamed", lambda *_: False)


def fitted(ranker_class, data, valid=None, **settings):
    return ranker_class(random_state=0, **settings).fit(data, valid=valid, progress=False)


@pytest.mark.parametrize("ranker_class", RANKERS)
def test_the_first_tree_is_that_of_lightgbm(ranker_class, stored, monkeypatch):
    data = stored[:400]
    own = fitted(ranker_class, data, num_trees=1, **ALL)
    by_lightgbm(monkeypatch)
    other = fitted(ranker_class, data, num_trees=1, **ALL)
    np.testing.assert_allclose(own.predict(data), other.predict(data), rtol=1e-4, atol=1e-6)
    assert len(np.unique(own.predict(data))) > 10


@pytest.mark.parametrize("ranker_class", RANKERS)
def test_as_good_as_lightgbm(ranker_class, stored, monkeypatch):
    own = fitted(ranker_class, stored[:400], stored[400:500], num_trees=60)
    by_lightgbm(monkeypatch)
    other = fitted(ranker_class, stored[:400], stored[400:500], num_trees=60)
    test = stored[500:]
    gains = rp.evaluate(own, test, ["ndcg@10"]).values[:, 0] - rp.evaluate(other, test, ["ndcg@10"]).values[:, 0]
    assert gains.mean() > -2 * gains.std() / math.sqrt(len(gains)) - 0.005


def test_lightgbm_gets_no_copy_of_the_data(stored, monkeypatch, tmp_path):
    monkeypatch.setattr(lightgbm, "Dataset", None)
    ranker = fitted(rp.LambdaMART, stored[:400], stored[400:], num_trees=20)
    curve = ranker.evals_result_["valid_0"]["ndcg@10"]
    assert len(curve) == 20
    assert ranker.score(stored[400:]) == pytest.approx(max(curve), abs=1e-6)
    ranker.save(tmp_path / "trees.rp")
    np.testing.assert_array_equal(rp.load(tmp_path / "trees.rp").predict(stored), ranker.predict(stored))
    in_memory = rp.data.from_arrays(
        np.asarray(stored.features), stored.labels, qid=np.repeat(np.arange(stored.num_queries), stored.sizes)
    )
    np.testing.assert_array_equal(ranker.predict(in_memory), ranker.predict(stored))


def test_blocks_and_the_choice_of_rows_change_nothing(stored, monkeypatch):
    whole = fitted(rp.LambdaMART, stored[:300], num_trees=5).predict(stored)
    monkeypatch.setattr(streamed, "_BYTES_OF_A_BLOCK", 1000)
    np.testing.assert_array_equal(fitted(rp.LambdaMART, stored[:300], num_trees=5).predict(stored), whole)
    by_numbers = stored[np.arange(300)]
    np.testing.assert_array_equal(fitted(rp.LambdaMART, by_numbers, num_trees=5).predict(stored), whole)


def test_a_missing_value_goes_where_it_belongs(tmp_path):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 2))
    labels = rng.integers(0, 2, 400)
    features[labels == 1, 0] = np.nan
    whole = rp.data.from_arrays(features, labels, qid=np.repeat(np.arange(40), 10))
    rp.data.write_parquet(whole, tmp_path / "data.parquet")
    data = rp.scan_parquet(tmp_path / "data.parquet", cache=tmp_path / "cache", progress=False)
    ranker = fitted(rp.LambdaMART, data, num_trees=2, min_items_in_leaf=5, **ALL)
    assert ranker.score(data) == pytest.approx((labels.reshape(40, 10).max(1) > 0).mean())


def test_items_that_no_feature_splits(stored):
    with pytest.raises(
        RankPolicyError, match=r"no feature splits the .* items into leaves of min_items_in_leaf=100000"
    ):
        fitted(rp.LambdaMART, stored, num_trees=2, min_items_in_leaf=100_000)


def test_gradients_of_two_items_by_hand():
    gradient, hessian = np.empty(2, np.float32), np.empty(2, np.float32)
    scores, labels = np.zeros(2, np.float32), np.array([0, 1], np.uint8)
    lambda_gradients(scores, labels, np.array([0, 2]), np.ones(1), gradient, hessian, truncation=30)
    change = 1 - 1 / math.log2(3)  # of NDCG, if the two trade places
    scale = math.log2(1 + change) / change
    np.testing.assert_allclose(gradient, [change / 2 * scale, -change / 2 * scale], rtol=1e-6)
    np.testing.assert_allclose(hessian, [change / 4 * scale] * 2, rtol=1e-6)


def test_the_best_split_by_hand():
    histogram = np.zeros((1, 256, 2))
    histogram[0, :3] = [[-2, 1], [-2, 1], [4, 2]]
    split = best_split(
        histogram, np.arange(1), 3, gradient=0.0, hessian=4.0, num_items=4, min_items=1, min_hessian=0.0, l2=0.0
    )
    assert (split.feature, split.code, split.missing_left) == (0, 1, False)
    assert split.gain == pytest.approx(4**2 / 2 + 4**2 / 2)
    assert (split.gradient, split.hessian) == (-4, 2)
