"""Networks that read whole queries, in every ranker over networks."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import rankpolicy as rp
from rankpolicy.rankers import RANKERS
from rankpolicy.rankers.networks.network import NetworkRanker

DATA = rp.make_web_search(30, items_per_query=(2, 40), num_features=8, random_state=0)
DATA = replace(DATA, groups_by_query=np.array(["a", "b"])[np.arange(DATA.num_items) % 2])
TRAIN, VALID, TEST = DATA[:15], DATA[15:20], DATA[20:]
MODELS = {
    "attention": rp.models.ListTransformer(width=8, num_blocks=1),
    "means": rp.models.MLP(hidden=(8,), query_context="mean"),
    "highway": rp.models.Highway(hidden=(8,), query_context="mean"),
}
OVER_NETWORKS = [name for name in RANKERS if issubclass(RANKERS[name], NetworkRanker)]
BY_MODEL = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def fitted(model, kind=rp.ListNet, **settings):
    return kind(model=model, **{"epochs": 2, **settings}).fit(TRAIN, valid=VALID, progress=False)


@BY_MODEL
@pytest.mark.parametrize("name", OVER_NETWORKS)
def test_every_network_ranker_learns_predicts_and_is_saved(name, model, tmp_path):
    own = {"protected_group": "b"} if name == "deltr" else {}
    ranker = fitted(model, RANKERS[name], num_networks=2, **own)
    scores = ranker.predict(TEST)
    assert np.isfinite(scores).all()
    ranker.save(tmp_path / "model.rp")
    loaded = rp.load(tmp_path / "model.rp")
    assert loaded.model == model
    np.testing.assert_array_equal(loaded.predict(TEST), scores)
    one_by_one = np.concatenate([loaded.predict(TEST[[query]]) for query in range(TEST.num_queries)])
    np.testing.assert_allclose(one_by_one, scores, atol=1e-5)


@BY_MODEL
def test_the_rows_of_a_query_may_stand_anywhere_but_must_be_known(model):
    ranker = fitted(model)
    with pytest.raises(rp.RankPolicyError, match="which rows belong to one query must be known"):
        ranker.predict(TEST.features)
    scores = ranker.predict(TEST.features, group=TEST.sizes)
    np.testing.assert_array_equal(scores, ranker.predict(TEST))
    shuffled = np.random.default_rng(0).permutation(TEST.num_items)
    again = ranker.predict(TEST.features[shuffled], qid=TEST.query_of_item[shuffled])
    np.testing.assert_allclose(again, scores[shuffled], atol=1e-5)
    sparse = scipy.sparse.csr_matrix(TEST.features)
    np.testing.assert_allclose(ranker.predict(sparse, group=TEST.sizes), scores, atol=1e-5)


@BY_MODEL
@pytest.mark.parametrize("data", ["sparse", "missing"])
def test_sparse_features_and_missing_values_are_learned_from(model, data):
    features = TRAIN.features.copy()
    features[np.random.default_rng(0).random(features.shape) < 0.3] = 0 if data == "sparse" else np.nan
    given = scipy.sparse.csr_matrix(features) if data == "sparse" else features
    ranker = rp.ListNet(model=model, epochs=1).fit(given, TRAIN.labels, group=TRAIN.sizes, progress=False)
    dense = rp.ListNet(model=model, epochs=1).fit(features, TRAIN.labels, group=TRAIN.sizes, progress=False)
    np.testing.assert_allclose(ranker.predict(TEST), dense.predict(TEST), atol=1e-4)


@BY_MODEL
@pytest.mark.parametrize("valid_metric", ["objective", "ndcg@10"])
def test_fair_networks_meet_a_bound_with_them(model, valid_metric):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the bound is not met within two epochs
        ranker = fitted(model, rp.FairPGRank, max_disparity=0.01, valid_metric=valid_metric)
    assert ranker.report_["disparity"] >= 0
    assert np.isfinite(ranker.predict(TEST)).all()


def test_a_checkpoint_continues_as_if_training_had_not_stopped(tmp_path):
    settings = {"model": MODELS["attention"], "num_networks": 2}
    whole = rp.PGRank(epochs=4, **settings).fit(TRAIN, valid=VALID, progress=False)
    rp.PGRank(epochs=2, **settings).fit(TRAIN, valid=VALID, progress=False, checkpoint=tmp_path / "c")
    resumed = rp.PGRank(epochs=4, **settings)
    resumed.fit(TRAIN, valid=VALID, progress=False, checkpoint=tmp_path / "c", resume=True)
    np.testing.assert_array_equal(resumed.predict(TEST), whole.predict(TEST))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (MODELS["means"], replace(MODELS["means"], query_context="none")),
        (MODELS["attention"], replace(MODELS["attention"], num_heads=4)),
        (MODELS["attention"], replace(MODELS["attention"], num_blocks=2)),
    ],
)
def test_training_continues_only_with_the_same_network(first, then):
    before = fitted(first)
    frozen = rp.ListNet(model=first, epochs=1, learning_rate=1e-12).fit(TRAIN, init=before, progress=False)
    np.testing.assert_allclose(frozen.predict(TEST), before.predict(TEST), atol=1e-5)
    with pytest.raises(rp.RankPolicyError, match="must have the same model"):
        rp.ListNet(model=then, epochs=1).fit(TRAIN, init=before, progress=False)
