import numpy as np
import pytest

import rankpolicy as rp

DATA = rp.make_web_search(150, random_state=2)
TRAIN, VALID, TEST = DATA[:90], DATA[90:110], DATA[110:]


def ndcg(ranker):
    return rp.evaluate(ranker, TEST, ["ndcg@10"]).means["ndcg@10"]


def test_training_beats_an_untrained_policy_on_every_seed():
    for seed in range(3):
        settings = {"num_networks": 1, "random_state": seed, "batch_queries": 16}
        untrained = rp.PGRank(epochs=1, learning_rate=1e-12, **settings).fit(TRAIN)
        trained = rp.PGRank(epochs=25, **settings).fit(TRAIN, valid=VALID)
        assert ndcg(trained) > ndcg(untrained) + 0.1


@pytest.mark.parametrize("model", ["linear", "mlp", "highway"])
def test_the_reward_rises_in_training(model):
    ranker = rp.PGRank(model=model, num_networks=1, epochs=10, batch_queries=8)
    if model != "linear":
        ranker.set_params(model__hidden=(16, 16))
    ranker.fit(TRAIN)
    rewards = ranker.evals_result_["training"]["reward"]
    assert np.mean(rewards[-3:]) > rewards[0] + 0.02


@pytest.mark.parametrize("reward", ["map", "mean(ap, err@10)", "ndcg@5 * rr", "rbp"])
def test_any_metric_can_be_the_reward(reward):
    ranker = rp.PGRank(reward=reward, num_networks=1, epochs=2).fit(TRAIN)
    at_random = np.random.default_rng(0).normal(size=TRAIN.num_items)
    learned, drawn = (rp.evaluate(scores, TRAIN, [reward]).values.mean() for scores in (ranker, at_random))
    assert learned > drawn + 0.03
    assert np.isfinite(ranker.predict(TEST)).all()


def test_a_function_can_be_the_reward_and_the_model_is_still_saved(tmp_path):
    def label_on_top(rankings, labels, mask):
        return labels.expand(*rankings.shape[:-1], -1).gather(-1, rankings[..., :1]).squeeze(-1)

    ranker = rp.PGRank(reward=label_on_top, num_networks=1, epochs=2).fit(TRAIN)
    ranker.save(tmp_path / "model.rp")
    loaded = rp.load(tmp_path / "model.rp")
    np.testing.assert_array_equal(loaded.predict(TEST), ranker.predict(TEST))
    assert loaded.reward == "label_on_top"


def test_features_scaled_by_query_need_the_queries():
    ranker = rp.PGRank(scaling="query_minmax", num_networks=1, epochs=2).fit(TRAIN)
    with pytest.raises(rp.RankPolicyError, match="which rows belong to one query must be known"):
        ranker.predict(TEST.features)
    np.testing.assert_array_equal(ranker.predict(TEST.features, group=TEST.sizes), ranker.predict(TEST))


def test_checkpoint_and_resume_through_the_ranker(tmp_path):
    settings = {"num_networks": 2, "random_state": 1}
    whole = rp.PGRank(epochs=6, **settings).fit(TRAIN, valid=VALID)
    rp.PGRank(epochs=3, **settings).fit(TRAIN, valid=VALID, checkpoint=tmp_path / "c")
    resumed = rp.PGRank(epochs=6, **settings).fit(TRAIN, valid=VALID, checkpoint=tmp_path / "c", resume=True)
    np.testing.assert_array_equal(resumed.predict(TEST), whole.predict(TEST))


def test_labels_above_the_scale_of_err_are_refused():
    labels = TRAIN.labels + 5
    with pytest.raises(rp.RankPolicyError, match="max_label"):
        rp.PGRank(reward="err@10", epochs=1).fit(TRAIN.features, labels, group=TRAIN.sizes)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reward": "ndgc@10"}, "Unknown metric 'ndgc'. Did you mean 'ndcg'"),
        ({"reward": "avg_rank"}, "must rise as rankings get better; 'avg_rank' falls. Write '-avg_rank'"),
        ({"valid_metric": "avg_rank"}, "must rise as rankings get better"),
        ({"estimator": "exakt"}, "Unknown estimator 'exakt'"),
        ({"control": "men"}, "Unknown control 'men'"),
        ({"num_samples": 0}, "num_samples must be at least 1; got 0"),
        ({"scaling": "minmax"}, "Unknown scaling 'minmax'"),
        ({"num_networks": 0}, "num_networks must be at least 1"),
        ({"valid_metric": "mapp"}, "Unknown metric 'mapp'"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        rp.PGRank(epochs=1, **settings).fit(TRAIN, valid=VALID)


def test_data_without_relevant_items_is_refused():
    with pytest.raises(rp.RankPolicyError, match="nothing can be learned: no query has items of different labels"):
        rp.PGRank().fit(TRAIN.features, TRAIN.labels * 0, group=TRAIN.sizes)


def test_an_own_reward_sees_queries_without_relevant_items_too():
    seen = []

    def first_item_first(rankings, labels, mask):
        seen.append(labels.shape[0])
        return (rankings[..., 0] == 0).float()

    ranker = rp.PGRank(reward=first_item_first, epochs=1, num_networks=1, batch_queries=1000)
    ranker.fit(TRAIN.features, TRAIN.labels * 0, group=TRAIN.sizes)
    assert max(seen) == TRAIN.num_queries
