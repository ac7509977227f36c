import math
import sys

import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.gradients import pl_rank, pl_rank_of_rankings
from rankpolicy.metrics import METRICS, as_reward, parse_metric
from rankpolicy.policies import PlackettLuce
from tests.enumeration import all_rankings, enumerated_gradient

REWARDS = [
    *(f"{name}{cutoff}" for name, metric in METRICS.items() if metric.additive for cutoff in ("", "@3")),
    "0.7*ndcg@2 + 0.3*recall@4",
    "ndcg - 0.5*p@2",
]
SCORES = torch.tensor([[0.5, -1.0, 0.0, 1.0, 0.2]], dtype=torch.float64)
LABELS = torch.tensor([[1.0, 0.0, 2.0, 0.0, 3.0]], dtype=torch.float64)
MASK = torch.ones_like(SCORES, dtype=torch.bool)


def repeated(num_queries):
    return tuple(part.repeat(num_queries, 1) for part in (SCORES, LABELS, MASK))


@pytest.mark.parametrize("name", REWARDS)
def test_estimates_agree_with_the_enumerated_gradient(name):
    reward, num_queries = parse_metric(name), 4000
    generator = torch.Generator().manual_seed(1)
    estimate = pl_rank(*repeated(num_queries), reward=reward, num_samples=8, generator=generator)
    error = (estimate.gradient.mean(0) - enumerated_gradient(SCORES, LABELS, reward)[0]).abs()
    standard_error = estimate.gradient.std(0) / math.sqrt(num_queries)
    assert (error <= 4 * standard_error + 1e-12).all(), (error / standard_error).tolist()
    rankings = all_rankings(5)
    utility = (PlackettLuce(SCORES, MASK).log_prob(rankings).exp() * reward(rankings, LABELS, MASK)).sum(0)
    assert (estimate.reward.mean() - utility).abs() <= 4 * estimate.reward.std() / math.sqrt(num_queries) + 1e-12


@pytest.mark.parametrize("name", REWARDS)
def test_the_mean_over_all_rankings_is_the_gradient(name):
    reward, rankings = parse_metric(name), all_rankings(5)
    probabilities = PlackettLuce(SCORES, MASK).log_prob(rankings).exp()
    estimates = [pl_rank_of_rankings(SCORES, LABELS, MASK, rankings=one[None], reward=reward) for one in rankings]
    mean = sum(p * estimate.gradient for p, estimate in zip(probabilities, estimates, strict=True))
    torch.testing.assert_close(mean, enumerated_gradient(SCORES, LABELS, reward), atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", ["ndcg@10", "ndcg", "p@3", "-avg_rank"])
@pytest.mark.parametrize("num_items", [1, 2, 200])
@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_short_and_extreme_lists_stay_finite(name, num_items, scale, dtype):
    generator = torch.Generator().manual_seed(4)
    scores = scale * (2 * torch.rand(2, num_items, generator=generator, dtype=dtype) - 1)
    labels = torch.zeros(2, num_items)
    labels[0, -1] = 1.0  # the second query has no relevant item
    mask = torch.ones_like(scores, dtype=torch.bool)
    reward = parse_metric(name)
    rankings = PlackettLuce(scores, mask).sample(4, generator=generator)
    for result in (
        pl_rank(scores, labels, mask, reward=reward, num_samples=4, generator=generator),
        pl_rank_of_rankings(scores, labels, mask, rankings=rankings, reward=reward),
    ):
        assert result.gradient.dtype == dtype
        assert torch.isfinite(result.gradient).all()
        assert torch.isfinite(result.reward).all()
        assert (result.gradient[1] == 0).all()


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_long_lists_with_a_cutoff_stay_finite(scale):
    generator = torch.Generator().manual_seed(5)
    scores = scale * torch.randn(2, 5000, generator=generator)
    labels = torch.randint(0, 3, scores.shape, generator=generator).float()
    mask = torch.ones_like(scores, dtype=torch.bool)
    estimate = pl_rank(scores, labels, mask, reward=parse_metric("ndcg@10"), num_samples=4, generator=generator)
    assert torch.isfinite(estimate.gradient).all()


def test_without_the_kernel_the_reference_serves(monkeypatch):
    monkeypatch.setattr(sys.modules["rankpolicy.gradients.pl_rank"], "HAS_NUMBA", False)
    reward = parse_metric("ndcg@3")
    estimates = [
        pl_rank(SCORES, LABELS, MASK, reward=reward, num_samples=6, generator=torch.Generator().manual_seed(6)),
        pl_rank_of_rankings(
            SCORES,
            LABELS,
            MASK,
            rankings=PlackettLuce(SCORES, MASK).sample(6, generator=torch.Generator().manual_seed(6)),
            reward=reward,
        ),
    ]
    torch.testing.assert_close(estimates[0].gradient, estimates[1].gradient)


@pytest.mark.parametrize(
    "reward", [parse_metric("ap"), parse_metric("ndcg*p@2"), as_reward(lambda rankings, labels, mask: labels[:, 0])]
)
def test_other_rewards_are_refused_with_advice(reward):
    with pytest.raises(RankPolicyError, match="estimator='reinforce'"):
        pl_rank(SCORES, LABELS, MASK, reward=reward)


def test_no_samples_are_refused():
    with pytest.raises(RankPolicyError, match="num_samples must be at least 1; got 0"):
        pl_rank(SCORES, LABELS, MASK, reward=parse_metric("ndcg"), num_samples=0)
