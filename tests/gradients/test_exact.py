import sys

import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.gradients import auto, exact, exposure_gradient, reinforce
from rankpolicy.metrics import as_reward, parse_metric
from rankpolicy.policies import PlackettLuce
from tests.enumeration import all_rankings, enumerated_gradient

SCORES = torch.tensor([[0.5, -1.0, 0.0, 1.0, 0.2]], dtype=torch.float64)
LABELS = torch.tensor([[1.0, 0.0, 2.0, 0.0, 3.0]], dtype=torch.float64)
MASK = torch.ones_like(SCORES, dtype=torch.bool)


@pytest.mark.parametrize("name", ["ndcg", "ndcg@3", "dcg@2", "p@2", "recall@3", "rbp", "-avg_rank", "ndcg@2 + 0.5*p@3"])
def test_additive_rewards_have_an_exact_gradient(name):
    reward = parse_metric(name)
    estimate = exact(SCORES, LABELS, MASK, reward=reward)
    expected = enumerated_gradient(SCORES, LABELS, reward)
    # The coarse nodes of training are good to a thousandth.
    torch.testing.assert_close(estimate.gradient, expected, atol=1e-3 * expected.abs().max().item(), rtol=0)
    rankings = all_rankings(5)
    probabilities = PlackettLuce(SCORES, MASK).log_prob(rankings).exp()
    utility = (probabilities * reward(rankings, LABELS, MASK)).sum(0)
    torch.testing.assert_close(estimate.reward, utility, rtol=1e-3, atol=1e-4)


def test_other_rewards_are_refused_with_advice():
    for reward in (
        parse_metric("ap"),
        parse_metric("ndcg*p@2"),
        as_reward(lambda rankings, labels, mask: labels[:, 0]),
    ):
        with pytest.raises(RankPolicyError, match="estimator='reinforce'"):
            exact(SCORES, LABELS, MASK, reward=reward)


def test_auto_is_exact_where_it_can_be_and_samples_elsewhere():
    additive, other = parse_metric("ndcg@3"), parse_metric("ndcg * ap")
    torch.testing.assert_close(
        auto(SCORES, LABELS, MASK, reward=additive).gradient, exact(SCORES, LABELS, MASK, reward=additive).gradient
    )
    states = [torch.Generator().manual_seed(0) for _ in range(2)]
    torch.testing.assert_close(
        auto(SCORES, LABELS, MASK, reward=other, generator=states[0]).gradient,
        reinforce(SCORES, LABELS, MASK, reward=other, generator=states[1]).gradient,
    )


def test_without_the_kernel_autograd_gives_the_same(monkeypatch):
    weights = torch.tensor([1.0, 0.5, 0.25, 0.0, 0.0], dtype=torch.float64)
    compiled = exposure_gradient(SCORES, MASK, LABELS, rank_weights=weights)
    monkeypatch.setattr(sys.modules["rankpolicy.gradients.exact"], "HAS_NUMBA", False)
    plain = exposure_gradient(SCORES, MASK, LABELS, rank_weights=weights)
    for a, b in zip(compiled, plain, strict=True):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=0)
