import math

import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.policies import PlackettLuce
from rankpolicy.policies.mixture import Mixture
from tests.enumeration import all_rankings

MASK = torch.tensor([[True, True, True], [True, True, False]])
RANKINGS = torch.tensor([[[0, 1, 2], [0, 1, 2]], [[2, 0, 1], [1, 0, 2]], [[0, 1, 2], [0, 1, 2]]])
WEIGHTS = torch.tensor([[0.3, 1.0], [0.4, 0.0], [0.3, 0.0]])
POLICY = Mixture(RANKINGS, WEIGHTS, MASK)


def test_equal_rankings_add_up():
    assert POLICY.log_prob(torch.tensor([[0, 1, 2], [0, 1, 2]])).exp().tolist() == pytest.approx([0.6, 1.0])
    assert POLICY.log_prob(torch.tensor([[2, 0, 1], [1, 0, 2]])).exp().tolist() == pytest.approx([0.4, 0.0])
    assert POLICY.mode().tolist() == [[0, 1, 2], [0, 1, 2]]


def test_a_prefix_counts_all_rankings_that_begin_so():
    assert POLICY.log_prob(torch.tensor([[0], [0]])).exp().tolist() == pytest.approx([0.6, 1.0])
    assert POLICY.log_prob(RANKINGS[1], cutoff=2).exp().tolist() == pytest.approx([0.4, 0.0])


def test_a_mixture_of_all_rankings_is_the_policy_they_come_from():
    policy = PlackettLuce(torch.tensor([[3.0, 2.0, 1.0]]).log(), MASK[:1])
    rankings = all_rankings(3)
    mixture = Mixture(rankings, policy.log_prob(rankings).exp(), MASK[:1])
    torch.testing.assert_close(mixture.log_prob(rankings), policy.log_prob(rankings))
    torch.testing.assert_close(mixture.log_prob(rankings, cutoff=1), policy.log_prob(rankings, cutoff=1))
    assert torch.equal(mixture.mode(), policy.mode())
    first = mixture.exposure(torch.tensor([1.0]))
    torch.testing.assert_close(first, torch.tensor([[3 / 6, 2 / 6, 1 / 6]]))


def test_samples_have_the_stated_frequencies():
    num_samples = 4000
    samples = POLICY.sample(num_samples, generator=torch.Generator().manual_seed(0))
    assert samples.shape == (num_samples, 2, 3)
    frequency = (samples[:, 0] == RANKINGS[1, 0]).all(-1).double().mean().item()
    assert abs(frequency - 0.4) < 4 * math.sqrt(0.4 * 0.6 / num_samples)
    assert (samples[:, 1] == torch.tensor([0, 1, 2])).all()
    assert POLICY.sample(2, cutoff=1).shape == (2, 2, 1)


def test_exposure_is_the_weighted_mean():
    bias = torch.tensor([1.0, 0.6, 0.5])
    expected = [[0.6 * 1 + 0.4 * 0.6, 0.6 * 0.6 + 0.4 * 0.5, 0.6 * 0.5 + 0.4 * 1], [1, 0.6, 0]]
    torch.testing.assert_close(POLICY.exposure(bias), torch.tensor(expected))


def test_wrong_input_is_named():
    with pytest.raises(RankPolicyError, match=r"rankings\[:, None\]"):
        Mixture(RANKINGS[:, 0], WEIGHTS[:, 0], MASK[0])
    with pytest.raises(RankPolicyError, match="Divide by the sums"):
        Mixture(RANKINGS, 2 * WEIGHTS, MASK)
    with pytest.raises(RankPolicyError, match="item indices once"):
        Mixture(torch.zeros_like(RANKINGS), WEIGHTS, MASK)
    with pytest.raises(RankPolicyError, match="padded items must come last"):
        Mixture(RANKINGS[..., [2, 1, 0]], WEIGHTS, MASK)
    with pytest.raises(RankPolicyError, match="weights must be floating point"):
        Mixture(RANKINGS, WEIGHTS.long(), MASK)
