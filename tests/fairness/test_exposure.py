import math

import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.fairness import POSITION_BIASES, mixture_exposure, position_bias, ranking_exposure, sampled_exposure
from rankpolicy.policies import PlackettLuce
from tests.enumeration import all_rankings


def test_golden_biases():
    assert position_bias(3).tolist() == pytest.approx([1, 1 / math.log2(3), 0.5])
    assert position_bias(3, kind="inverse").tolist() == pytest.approx([1, 1 / 2, 1 / 3])
    assert position_bias(3, kind="geometric").tolist() == pytest.approx([1, 0.8, 0.64])


@pytest.mark.parametrize("kind", POSITION_BIASES)
def test_biases_fall_from_one(kind):
    bias = position_bias(50, kind=kind, dtype=torch.float64)
    assert bias[0] == 1
    assert bias.dtype == torch.float64
    assert (bias.diff() < 0).all()


def test_a_vector_is_cut_or_filled_up():
    assert position_bias(2, kind=[3.0, 2.0, 1.0]).tolist() == [3, 2]
    assert position_bias(4, kind=torch.tensor([3.0, 2.0])).tolist() == [3, 2, 0, 0]


@pytest.mark.parametrize("vector", [[1.0, 2.0], [1.0, -1.0], [1.0, math.nan], [[1.0, 0.5]]])
def test_a_wrong_vector_is_refused(vector):
    with pytest.raises(RankPolicyError, match="never increases"):
        position_bias(2, kind=vector)


def test_unknown_kind_and_length_are_named():
    with pytest.raises(RankPolicyError, match="Known: log2, inverse, geometric"):
        position_bias(2, kind="log")
    with pytest.raises(RankPolicyError, match="1 or more; got 0"):
        position_bias(0)


def test_padded_items_and_those_a_prefix_leaves_out_are_not_seen():
    mask = torch.tensor([[True, True, False]])
    bias = position_bias(3)
    assert ranking_exposure(torch.tensor([[1, 0, 2]]), mask, bias).tolist() == [[pytest.approx(0.6309, abs=1e-4), 1, 0]]
    assert ranking_exposure(torch.tensor([[1]]), mask, bias).tolist() == [[0, 1, 0]]
    assert ranking_exposure(torch.tensor([[1, 0, 2]]), mask, bias[:1]).tolist() == [[0, 1, 0]]


def test_sampled_exposure_is_the_mean_over_rankings():
    policy = PlackettLuce(torch.tensor([[1.0, 0.0, -1.0]]).double(), torch.ones(1, 3, dtype=torch.bool))
    bias = position_bias(3, dtype=torch.float64)
    rankings = all_rankings(3)
    exact = mixture_exposure(rankings, policy.log_prob(rankings).exp(), policy.mask, bias=bias)
    samples = policy.sample(20_000, generator=torch.Generator().manual_seed(0))
    each = ranking_exposure(samples, policy.mask, bias)
    torch.testing.assert_close(sampled_exposure(samples, policy.mask, bias), each.mean(0))
    assert ((each.mean(0) - exact).abs() < 4 * each.std(0) / math.sqrt(len(samples))).all()
    assert exact.sum().item() == pytest.approx(bias.sum().item())


def test_samples_need_an_axis():
    with pytest.raises(RankPolicyError, match=r"\(sample, query, position\)"):
        sampled_exposure(torch.tensor([[0, 1]]), torch.ones(1, 2, dtype=torch.bool), position_bias(2))
