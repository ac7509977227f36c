import numpy as np
import pytest
from torch import nn

import rankpolicy as rp
from rankpolicy.objectives import CrossEntropyLoss
from rankpolicy.rankers.networks.bandit_rank import PAPER_REWARDS

DATA = rp.make_web_search(150, random_state=2)
TRAIN, VALID, TEST = DATA[:90], DATA[90:110], DATA[110:]
SMALL = {"model": rp.models.MLP(hidden=(16,)), "num_networks": 1, "num_samples": 8}


def test_training_beats_an_untrained_policy_on_every_seed():
    for seed in range(2):
        settings = SMALL | {"random_state": seed, "batch_queries": 16}
        untrained = rp.BanditRank(epochs=1, learning_rate=1e-12, **settings).fit(TRAIN)
        for gamma in (0.5, 1.0):
            trained = rp.BanditRank(epochs=15, gamma=gamma, learning_rate=3e-3, **settings).fit(TRAIN, valid=VALID)
            before, after = (rp.evaluate(ranker, TEST, ["map"]).means["map"] for ranker in (untrained, trained))
            assert after > before + 0.1


def test_every_part_is_logged_for_every_epoch():
    ranker = rp.BanditRank(reward=PAPER_REWARDS["R6"], epochs=3, **SMALL).fit(TRAIN, valid=VALID)
    history = ranker.evals_result_["training"]
    assert set(history) == {"reward", "ap", "p@3", "p@5", "ndcg@3", "ndcg@5", "L_rl", "L_sl"}
    assert all(len(values) == 3 for values in history.values())
    metrics = np.mean([history[name] for name in ("ap", "p@3", "p@5", "ndcg@3", "ndcg@5")], axis=0)
    np.testing.assert_allclose(history["reward"], metrics, rtol=1e-5)
    assert ranker.evals_result_["valid_0"]["map"][ranker.best_iteration_ - 1] == ranker.best_score_


def test_parts_survive_a_checkpoint(tmp_path):
    settings = SMALL | {"epsilon": "decaying", "reward": "trained_mean(ap, ndcg@10)"}
    whole = rp.BanditRank(epochs=4, **settings).fit(TRAIN, valid=VALID)
    rp.BanditRank(epochs=2, **settings).fit(TRAIN, valid=VALID, checkpoint=tmp_path / "c")
    resumed = rp.BanditRank(epochs=4, **settings).fit(TRAIN, valid=VALID, checkpoint=tmp_path / "c", resume=True)
    assert resumed.evals_result_ == whole.evals_result_


@pytest.mark.parametrize("name", PAPER_REWARDS)
def test_the_papers_rewards_train(name):
    ranker = rp.BanditRank(reward=PAPER_REWARDS[name], epochs=1, **SMALL).fit(TRAIN)
    measured = {key: values[0] for key, values in ranker.evals_result_["training"].items()}
    metrics = [value for key, value in measured.items() if key not in ("reward", "L_rl", "L_sl")]
    assert measured["reward"] == pytest.approx(np.mean(metrics), rel=1e-5)
    assert min(metrics) > 0
    untrained = rp.BanditRank(reward=PAPER_REWARDS[name], epochs=1, learning_rate=1e-12, **SMALL).fit(TRAIN)
    assert (ranker.predict(TEST) != untrained.predict(TEST)).all()


def test_queries_without_relevant_items_are_left_out_and_counted():
    num_empty = int((~TRAIN.has_relevant_items()).sum())
    assert num_empty > 0
    assert rp.BanditRank(epochs=1, **SMALL).fit(TRAIN).report_ == {"queries_left_out": {"no relevant item": num_empty}}
    penalised = rp.BanditRank(epochs=1, loss=CrossEntropyLoss(empty_penalty=1.0), **SMALL).fit(TRAIN)
    assert penalised.report_ == {"queries_left_out": {"no relevant item": 0}}
    assert penalised.evals_result_["training"]["excess"][0] >= 0
    with pytest.raises(rp.RankPolicyError, match="no query has an item with label >= 1"):
        rp.BanditRank(**SMALL).fit(TRAIN.features, TRAIN.labels / 9, group=TRAIN.sizes)


def test_the_policy_at_ranking_time_is_by_affinity_without_chance():
    ranker = rp.BanditRank(epochs=2, **SMALL).fit(TRAIN)
    query = TEST[:1]
    affinities = 1 / (1 + np.exp(-ranker.predict(query)))
    ranking = ranker.rank(query)[0][None]
    first = np.exp(ranker.policy(query).log_prob(ranking, cutoff=1).item())
    assert first == pytest.approx(affinities.max() / affinities.sum(), rel=1e-6)
    np.testing.assert_array_equal(ranker.policy(query).mode(), ranking)


class OneScore(nn.Module):
    def __init__(self, num_features):
        super().__init__()
        self.linear = nn.Linear(num_features, 1)

    def forward(self, features):
        return self.linear(features).squeeze(-1)


@pytest.mark.parametrize("as_instance", [True, False])
def test_a_network_of_ones_own(as_instance, tmp_path):
    model = OneScore(DATA.num_features) if as_instance else OneScore
    ranker = rp.BanditRank(model=model, scaling="standardize", num_networks=2, epochs=2).fit(TRAIN, valid=VALID)
    ranker.save(tmp_path / "model.rp")
    with pytest.raises(
        rp.RankPolicyError, match=r"a custom network, OneScore, which the file does not hold: load\(path, model="
    ):
        rp.load(tmp_path / "model.rp")
    loaded = rp.load(tmp_path / "model.rp", model=model)
    np.testing.assert_array_equal(loaded.predict(TEST), ranker.predict(TEST))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 1.5}, "gamma must be at least 0 and at most 1; got 1.5"),
        ({"epsilon": 2.0}, "epsilon must be at least 0 and at most 1; got 2.0"),
        ({"max_positions": 0}, "max_positions must be at least 1"),
        ({"epsilon": "entropic"}, "Unknown epsilon 'entropic'. Did you mean 'entropy'"),
        ({"control": "greed"}, "Unknown control 'greed'. Did you mean 'greedy'"),
        (
            {"empty_penalty": 1.0},
            r"has no setting 'empty_penalty'; it belongs to loss: loss=.*CrossEntropyLoss\(empty_penalty=",
        ),
        ({"loss": "hinge"}, r"Unknown loss 'hinge'\. .*Known: cross_entropy, softmax, list_net, squared"),
        ({"valid_metric": "trained_mean(ap, rr)"}, "weights are trained by BanditRank's reward only"),
        ({"reward": "avg_rank"}, "must rise as rankings get better"),
        ({"model": "highwy"}, "Unknown model 'highwy'"),
        ({"model": lambda width: nn.Linear(width, 1)}, r"one score per item: .* two items gave the shape \(2, 1\)"),
        (
            {"model": OneScore(3)},
            "one score per item: .* two items gave an error .* scaling decides how many",
        ),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        rp.BanditRank(**SMALL | {"epochs": 1} | settings).fit(TRAIN, valid=VALID)
