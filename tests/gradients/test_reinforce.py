import math

import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.gradients import CONTROLS, log_prob_gradient, reinforce, reinforce_of_rankings
from rankpolicy.metrics import METRICS, as_reward, parse_metric, term_table
from rankpolicy.policies import PlackettLuce
from tests.enumeration import all_rankings, enumerated_gradient

REWARDS = [
    *(f"{name}{cutoff}" for name in METRICS for cutoff in ("", "@3")),
    "mean(ap, rr)",
    "0.7*ndcg@2 + 0.3*err@4",
    "ndcg@3 * ap",
]
SCORES = torch.tensor([[0.5, -1.0, 0.0, 1.0, 0.2]], dtype=torch.float64)
LABELS = torch.tensor([[1.0, 0.0, 2.0, 0.0, 3.0]], dtype=torch.float64)


def repeated(num_queries):
    scores = SCORES.repeat(num_queries, 1)
    return scores, LABELS.repeat(num_queries, 1), torch.ones_like(scores, dtype=torch.bool)


def assert_unbiased(estimates, exact):
    """Mean of independent estimates (query, item) within 4 standard errors of ``exact`` (1, item)."""
    error = (estimates.mean(0) - exact[0]).abs()
    standard_error = estimates.std(0) / math.sqrt(len(estimates))
    assert (error <= 4 * standard_error + 1e-12).all(), (error / standard_error).tolist()


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("name", REWARDS)
def test_estimates_agree_with_the_enumerated_gradient(name, control):
    num_samples, reward = 8, parse_metric(name)
    scores, labels, mask = repeated(4000)
    generator = torch.Generator().manual_seed(1)
    estimate = reinforce(
        scores, labels, mask, reward=reward, num_samples=num_samples, control=control, generator=generator
    )
    # The mean of all samples as control shrinks the expectation, as gradients/estimate.py says.
    shrinkage = (num_samples - 1) / num_samples if control == "mean" else 1.0
    assert_unbiased(estimate.gradient, shrinkage * enumerated_gradient(SCORES, LABELS, reward))


def test_a_reward_of_ones_own_goes_by_the_reference():
    def first_label(rankings, labels, mask):
        return labels.expand(*rankings.shape[:-1], -1).gather(-1, rankings[..., :1]).squeeze(-1)

    reward = as_reward(first_label)
    assert term_table(reward) is None
    scores, labels, mask = repeated(2000)
    generator = torch.Generator().manual_seed(2)
    estimate = reinforce(scores, labels, mask, reward=reward, num_samples=16, generator=generator)
    assert_unbiased(estimate.gradient, enumerated_gradient(SCORES, LABELS, reward))


def test_log_prob_gradient_is_what_autograd_finds():
    scores = torch.randn(1, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False, True, True]])
    for ranking in ([3, 0, 1, 4, 2], [4, 1], [0]):
        rankings = torch.tensor([ranking])
        (expected,) = torch.autograd.grad(PlackettLuce(scores, mask).log_prob(rankings).sum(), scores)
        torch.testing.assert_close(log_prob_gradient(scores.detach(), mask, rankings), expected)


def test_log_prob_gradients_average_to_zero_over_all_rankings():
    rankings = all_rankings(5)
    mask = torch.ones(1, 5, dtype=torch.bool)
    probabilities = PlackettLuce(SCORES, mask).log_prob(rankings).exp()
    mean = (probabilities[..., None] * log_prob_gradient(SCORES, mask, rankings)).sum(0)
    torch.testing.assert_close(mean, torch.zeros(1, 5, dtype=torch.float64), atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", ["ndcg@10", "ap", "mean(err, rr)", "p@3"])
@pytest.mark.parametrize("num_items", [1, 2, 5000])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_short_long_and_extreme_lists_stay_finite(name, num_items, scale):
    generator = torch.Generator().manual_seed(4)
    scores = scale * (2 * torch.rand(2, num_items, generator=generator) - 1)
    labels = torch.zeros(2, num_items)
    labels[0, -1] = 1.0  # the second query has no relevant item
    mask = torch.ones_like(scores, dtype=torch.bool)
    estimate = reinforce(scores, labels, mask, reward=parse_metric(name), num_samples=4, generator=generator)
    rankings = PlackettLuce(scores, mask).sample(4, generator=generator)
    reference = reinforce_of_rankings(scores, labels, mask, rankings=rankings, reward=parse_metric(name))
    for result in (estimate, reference):
        assert torch.isfinite(result.gradient).all()
        assert torch.isfinite(result.reward).all()
        assert (result.gradient[1] == 0).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"control": "median"},
            r"Unknown control 'median'. Did you mean 'mean'\? Known: leave_one_out, mean, greedy, none",
        ),
        ({"num_samples": 1}, "num_samples must be at least 2"),
        ({"num_samples": 0, "control": "none"}, "num_samples must be at least 1; got 0"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(RankPolicyError, match=message):
        reinforce(*repeated(1), reward=parse_metric("ndcg"), **settings)
