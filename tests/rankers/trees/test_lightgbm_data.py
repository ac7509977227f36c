"""Trees learn from features on disk what they learn from the same features in memory."""

import math

import numpy as np
import pytest

lightgbm = pytest.importorskip("lightgbm")

import rankpolicy as rp  # noqa: E402
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
    incomplete = rp.data.from_arrays(features, made.labels, qid=np.repeat(np.arange(made.num_queries), made.sizes))
    rp.data.write_parquet(incomplete, folder / "data.parquet")
    return rp.scan_parquet(folder / "data.parquet", cache=folder / "cache", progress=False)


@pytest.fixture(scope="module")
def in_memory(stored):
    return rp.data.from_arrays(
        np.asarray(stored.features), stored.labels, qid=np.repeat(np.arange(stored.num_queries), stored.sizes)
    )


def fitted(ranker_class, data, valid=None, **settings):
    return ranker_class(random_state=0, **settings).fit(data, valid=valid, progress=False)


@pytest.mark.parametrize("ranker_class", RANKERS)
def test_the_first_tree_is_that_of_the_data_in_memory(ranker_class, stored, in_memory):
    from_disk = fitted(ranker_class, stored[:400], num_trees=1, **ALL)
    from_memory = fitted(ranker_class, in_memory[:400], num_trees=1, **ALL)
    scores = from_disk.predict(stored)
    np.testing.assert_allclose(scores, from_memory.predict(in_memory), rtol=1e-4, atol=1e-6)
    assert len(np.unique(scores)) > 10


@pytest.mark.parametrize("ranker_class", RANKERS)
def test_as_good_as_in_memory(ranker_class, stored, in_memory):
    from_disk = fitted(ranker_class, stored[:400], stored[400:500], num_trees=60)
    from_memory = fitted(ranker_class, in_memory[:400], in_memory[400:500], num_trees=60)
    test = stored[500:]
    gains = (
        rp.evaluate(from_disk, test, ["ndcg@10"]).values[:, 0]
        - rp.evaluate(from_memory, test, ["ndcg@10"]).values[:, 0]
    )
    assert gains.mean() > -2 * gains.std() / math.sqrt(len(gains)) - 0.005


def test_curves_and_files_are_those_of_the_scores(stored, in_memory, tmp_path):
    ranker = fitted(rp.LambdaMART, stored[:400], stored[400:], num_trees=20)
    curve = ranker.evals_result_["valid_0"]["ndcg@10"]
    assert len(curve) == 20
    assert ranker.score(stored[400:]) == pytest.approx(max(curve), abs=1e-6)
    ranker.save(tmp_path / "trees.rp")
    np.testing.assert_array_equal(rp.load(tmp_path / "trees.rp").predict(stored), ranker.predict(stored))
    np.testing.assert_array_equal(ranker.predict(in_memory), ranker.predict(stored))


def test_blocks_and_the_choice_of_rows_change_nothing(stored, monkeypatch):
    scores = fitted(rp.LambdaMART, stored[:300], num_trees=5).predict(stored)
    monkeypatch.setattr("rankpolicy.rankers.trees.lightgbm_data._ROWS_PER_BLOCK", 100)
    np.testing.assert_array_equal(fitted(rp.LambdaMART, stored[:300], num_trees=5).predict(stored), scores)
    by_numbers = stored[np.arange(300)]
    np.testing.assert_array_equal(fitted(rp.LambdaMART, by_numbers, num_trees=5).predict(stored), scores)


def test_rare_values_are_split_off_where_leaves_may_be_small(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.zeros(400)
    labels[::40] = 1
    features = np.stack([labels, rng.normal(size=400)], axis=1)
    rare = rp.data.from_arrays(features, labels, qid=np.repeat(np.arange(40), 10))
    rp.data.write_parquet(rare, tmp_path / "data.parquet")
    data = rp.scan_parquet(tmp_path / "data.parquet", cache=tmp_path / "cache", progress=False)
    ranker = fitted(rp.LambdaMART, data, num_trees=2, min_items_in_leaf=5, **ALL)
    assert ranker.feature_importances_[0] > 0.9


@pytest.mark.parametrize("ranker_class", RANKERS)
@pytest.mark.filterwarnings("ignore:Converting data to scipy sparse matrix")
def test_training_goes_on_from_earlier_trees(ranker_class, stored):
    earlier = fitted(ranker_class, stored[:400], num_trees=3)
    later = ranker_class(num_trees=4, random_state=0).fit(stored[:400], init=earlier, progress=False)
    assert later.best_iteration_ == 7
    np.testing.assert_allclose(
        later.booster_.predict(np.asarray(stored.features), num_iteration=3), earlier.predict(stored), rtol=1e-6
    )


def test_validation_data_may_be_in_memory(stored, in_memory):
    mixed = fitted(rp.LambdaMART, stored[:400], in_memory[400:], num_trees=5)
    on_disk = fitted(rp.LambdaMART, stored[:400], stored[400:], num_trees=5)
    np.testing.assert_array_equal(
        mixed.evals_result_["valid_0"]["ndcg@10"], on_disk.evals_result_["valid_0"]["ndcg@10"]
    )


def test_a_small_sample_for_the_bins_is_no_warning(stored, monkeypatch, capfd):
    parameters = rp.LambdaMART._parameters
    monkeypatch.setattr(rp.LambdaMART, "_parameters", lambda self: parameters(self) | {"bin_construct_sample_cnt": 500})
    fitted(rp.LambdaMART, stored, num_trees=1)
    assert "".join(capfd.readouterr()) == ""


def test_a_missing_value_goes_where_it_belongs(tmp_path):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 2))
    labels = rng.integers(0, 2, 400)
    features[labels == 1, 0] = np.nan
    incomplete = rp.data.from_arrays(features, labels, qid=np.repeat(np.arange(40), 10))
    rp.data.write_parquet(incomplete, tmp_path / "data.parquet")
    data = rp.scan_parquet(tmp_path / "data.parquet", cache=tmp_path / "cache", progress=False)
    ranker = fitted(rp.LambdaMART, data, num_trees=2, min_items_in_leaf=5, **ALL)
    assert ranker.score(data) == pytest.approx((labels.reshape(40, 10).max(1) > 0).mean())


def test_items_that_no_feature_splits(stored):
    with pytest.raises(
        RankPolicyError, match=r"no feature splits the .* items into leaves of min_items_in_leaf=100000"
    ):
        fitted(rp.LambdaMART, stored, num_trees=2, min_items_in_leaf=100_000)
