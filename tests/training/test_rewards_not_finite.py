"""A reward that is NaN is the fault of the reward, and the error says so."""

import pytest
import torch

import rankpolicy as rp
from rankpolicy.metrics import parse_metric

DATA = rp.make_web_search(16, items_per_query=(3, 5), num_features=8, random_state=0)


def my_reward(rankings, labels, mask):
    return torch.full(rankings.shape[:-1], torch.nan)


def sometimes(rankings, labels, mask):
    values = torch.ones(rankings.shape[:-1])
    values[..., 0] = torch.inf
    return values


@pytest.mark.parametrize("reward", [my_reward, sometimes])
@pytest.mark.parametrize("ranker", [rp.PGRank, rp.BanditRank])
def test_it_is_named(ranker, reward):
    with pytest.raises(rp.RankPolicyError, match=f"reward '{reward.__name__}' must give finite numbers"):
        ranker(reward=reward, epochs=1).fit(DATA)


@pytest.mark.parametrize("ranker", [rp.AdaRank, rp.CoordinateAscent])
def test_it_is_named_by_linear_rankers(ranker):
    with pytest.raises(rp.RankPolicyError, match="reward 'my_reward' must give finite numbers"):
        ranker(reward=my_reward).fit(DATA)


def test_it_is_named_beside_fairness():
    groups = ["a" if item % 2 else "b" for item in range(DATA.num_items)]
    with pytest.raises(rp.RankPolicyError, match="reward 'my_reward' must give finite numbers"):
        rp.FairPGRank(reward=my_reward, estimator="reinforce", epochs=1).fit(DATA, protected=groups)


def test_a_validation_metric_too():
    with pytest.raises(rp.RankPolicyError, match="validation metric 'my_reward' must give a number"):
        rp.PGRank(valid_metric=my_reward, epochs=1).fit(DATA, valid=DATA)


def test_queries_that_the_conventions_leave_out_are_no_error():
    ranker = rp.PGRank(reward=parse_metric("ap", rp.Conventions(empty="skip")), epochs=1).fit(DATA)
    assert 0 < ranker.evals_result_["training"]["reward"][0] <= 1
