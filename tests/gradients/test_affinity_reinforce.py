import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.gradients import CONTROLS, affinity_log_prob_gradient, affinity_reinforce
from rankpolicy.metrics import as_reward, parse_metric, term_table
from rankpolicy.policies import Affinity
from tests.gradients.test_reinforce import LABELS, SCORES, assert_unbiased, repeated
from tests.policies.test_affinity import ordered_subsets


def enumerated_gradient(reward, *, epsilon, size):
    """sum over ordered subsets of P * R * dlog P/dscores, by autograd of P."""
    scores = SCORES.clone().requires_grad_()
    mask = torch.ones_like(scores, dtype=torch.bool)
    lists = ordered_subsets(5, size)
    probabilities = Affinity(scores, mask, epsilon).log_prob(lists).exp()
    (gradient,) = torch.autograd.grad((probabilities * reward(lists, LABELS, mask)).sum(), scores)
    return gradient


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("name", ["ap", "ndcg@2", "mean(ap, rr)", "ndcg@3 * ap", "rbp"])
@pytest.mark.parametrize(("epsilon", "size"), [(0.1, 3), (0.0, 5), (0.5, 2)])
def test_estimates_agree_with_the_enumerated_gradient(name, control, epsilon, size):
    num_samples, reward = 8, parse_metric(name)
    scores, labels, mask = repeated(4000)
    estimate = affinity_reinforce(
        scores,
        labels,
        mask,
        reward=reward,
        num_samples=num_samples,
        max_positions=size,
        epsilon=epsilon,
        control=control,
        generator=torch.Generator().manual_seed(1),
    )
    # The mean of all samples as control shrinks the expectation, as gradients/estimate.py says.
    shrinkage = (num_samples - 1) / num_samples if control == "mean" else 1.0
    exact = enumerated_gradient(reward, epsilon=epsilon, size=size)
    assert_unbiased(estimate.gradient, shrinkage * exact)
    assert set(estimate.metrics) == {str(leaf) for leaf in reward.leaves}


def test_a_reward_of_ones_own_goes_by_the_reference():
    def first_label(rankings, labels, mask):
        return labels.expand(*rankings.shape[:-1], -1).gather(-1, rankings[..., :1]).squeeze(-1)

    reward = as_reward(first_label)
    assert term_table(reward) is None
    generator = torch.Generator().manual_seed(2)
    estimate = affinity_reinforce(*repeated(2000), reward=reward, max_positions=2, generator=generator)
    assert_unbiased(estimate.gradient, enumerated_gradient(reward, epsilon=0.1, size=2))
    assert estimate.metrics == {}


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_log_prob_gradient_is_what_autograd_finds(epsilon):
    scores = torch.randn(1, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False, True, True]])
    for ranking in ([3, 0, 1, 4, 2], [4, 1], [0]):
        rankings = torch.tensor([ranking])
        (expected,) = torch.autograd.grad(Affinity(scores, mask, epsilon).log_prob(rankings).sum(), scores)
        found = affinity_log_prob_gradient(Affinity(scores.detach(), mask, epsilon), rankings)
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["mean(ap, ndcg@10)", "ap * ndcg"])  # compiled, and by the reference
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("scale", [0.0, -69.0, 1e4, -1e4])
def test_vanishing_equal_and_extreme_affinities_stay_finite(name, epsilon, scale):
    scores = torch.full((2, 6), scale)
    scores[1] *= torch.linspace(-1, 1, 6)
    labels = torch.zeros(2, 6)
    labels[:, 4] = 1.0
    mask = torch.ones_like(labels, dtype=torch.bool)
    estimate = affinity_reinforce(scores, labels, mask, reward=parse_metric(name), max_positions=4, epsilon=epsilon)
    assert torch.isfinite(estimate.gradient).all()
    assert torch.isfinite(estimate.reward).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"control": "median"}, "Unknown control 'median'"),
        ({"num_samples": 0}, "num_samples must be at least 1; got 0"),
        ({"epsilon": -0.1}, "epsilon is a share of choices"),
        ({"max_positions": 0}, "max_positions must be at least 1"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(RankPolicyError, match=message):
        affinity_reinforce(*repeated(1), reward=parse_metric("ndcg"), **settings)
