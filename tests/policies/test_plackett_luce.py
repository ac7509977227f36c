import math

import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.policies import PlackettLuce
from tests.enumeration import all_rankings

SCORES = torch.tensor([[3.0, 2.0, 1.0]], dtype=torch.float64).log()
MASK = torch.ones(1, 3, dtype=torch.bool)


def test_weights_3_2_1_give_the_probabilities_anybody_can_compute():
    probabilities = PlackettLuce(SCORES, MASK).log_prob(all_rankings(3)).exp().squeeze(-1)
    torch.testing.assert_close(probabilities, torch.tensor([1 / 3, 1 / 6, 1 / 4, 1 / 12, 1 / 10, 1 / 15]).double())


def test_a_prefix_sums_the_probabilities_of_its_completions():
    policy = PlackettLuce(SCORES, MASK)
    top_one = policy.log_prob(torch.tensor([[1]])).exp()
    assert top_one.item() == pytest.approx(1 / 4 + 1 / 12)
    assert policy.log_prob(torch.tensor([[1, 0, 2]]), cutoff=1).exp().item() == pytest.approx(2 / 6)


@pytest.mark.parametrize("cutoff", [1, 2, 3])
def test_probabilities_of_all_prefixes_sum_to_one(cutoff):
    scores = torch.randn(1, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    prefixes = torch.unique(all_rankings(4)[..., :cutoff], dim=0)
    total = PlackettLuce(scores, torch.ones_like(scores, dtype=torch.bool)).log_prob(prefixes).exp().sum()
    assert total.item() == pytest.approx(1.0)


def test_samples_have_the_stated_frequencies():
    num_samples = 20_000
    policy = PlackettLuce(SCORES, MASK)
    samples = policy.sample(num_samples, generator=torch.Generator().manual_seed(0)).squeeze(1)
    for ranking in all_rankings(3):
        probability = policy.log_prob(ranking).exp().item()
        frequency = (samples == ranking).all(-1).double().mean().item()
        assert abs(frequency - probability) < 4 * math.sqrt(probability * (1 - probability) / num_samples)


def test_padding_changes_nothing():
    scores = torch.tensor([[0.3, 99.0, -1.0, 99.0]], requires_grad=True)
    mask = torch.tensor([[True, False, True, False]])
    policy = PlackettLuce(scores, mask)
    assert policy.mode()[0, :2].tolist() == [0, 2]
    assert set(policy.sample(5)[0, 0, :2].tolist()) == {0, 2}
    log_prob = policy.log_prob(torch.tensor([[2, 0, 1, 3]]))
    log_prob.sum().backward()
    assert log_prob.item() == pytest.approx(-1.0 - math.log(math.exp(0.3) + math.exp(-1.0)))
    assert scores.grad[0, [1, 3]].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_scores_stay_finite(scale, dtype):
    scores = (torch.tensor([[1.0, -1.0, 0.0, 1.0]], dtype=dtype) * scale).requires_grad_()
    policy = PlackettLuce(scores, torch.ones(1, 4, dtype=torch.bool))
    log_prob = policy.log_prob(torch.cat([policy.sample(3), torch.tensor([[[1, 2, 0, 3]]])]))
    log_prob.sum().backward()
    assert torch.isfinite(log_prob).all()
    assert torch.isfinite(scores.grad).all()


def test_wrong_shapes_are_named():
    with pytest.raises(RankPolicyError, match=r"For one query add an axis: scores\[None\]"):
        PlackettLuce(torch.zeros(3), torch.ones(3, dtype=torch.bool))
    with pytest.raises(RankPolicyError, match="mask bool"):
        PlackettLuce(torch.zeros(1, 3), torch.ones(1, 3))
