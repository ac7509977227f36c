import pytest

import rankpolicy as rp
from rankpolicy.experiments import fit_best_mix
from rankpolicy.experiments.mixed_rewards import reward_mixes
from rankpolicy.rankers import BanditRank, LambdaMART

DATA = rp.make_web_search(60, random_state=1)


def test_weights_are_all_multiples_that_add_up_to_one():
    assert len(reward_mixes(["ap", "rr", "ndcg@5"], 3)) == 10
    for reward in reward_mixes(["ap", "rr", "ndcg@5"], 3):
        assert sum(term.weight for term in rp.metrics.parse_metric(reward).terms) == pytest.approx(1.0, abs=1e-5)


def test_the_mix_with_the_best_validation_score_is_kept():
    settings = {"epochs": 2, "num_samples": 4, "num_networks": 1, "model": "linear", "valid_metric": "ndcg@5"}
    selection = fit_best_mix(BanditRank, settings, DATA[:40], DATA[40:], metrics=["ap", "ndcg@5"], denominator=2)
    assert [tried["reward"] for tried, _ in selection.tried] == ["1*ap", "0.5*ap + 0.5*ndcg@5", "1*ndcg@5"]
    scores = [score for _, score in selection.tried]
    assert selection.ranker.best_score_ == max(scores)
    assert selection.settings == selection.tried[scores.index(max(scores))][0]
    assert selection.ranker.reward == selection.settings["reward"]


def test_what_cannot_be_mixed_is_named():
    with pytest.raises(rp.RankPolicyError, match="LambdaMART has no reward to mix"):
        fit_best_mix(LambdaMART, {}, DATA, DATA, metrics=["ap", "rr"])
    with pytest.raises(rp.RankPolicyError, match="two different metrics"):
        fit_best_mix(BanditRank, {}, DATA, DATA, metrics=["ap", "ap"])
