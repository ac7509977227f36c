import math
from itertools import permutations

import pytest
import torch
from scipy.stats import chisquare

from rankpolicy import RankPolicyError
from rankpolicy.policies import Affinity, PlackettLuce

AFFINITIES = torch.tensor([[0.9, 0.5, 0.2, 0.05, 0.6]], dtype=torch.float64)


def policy_of(affinities, **options):
    affinities = torch.as_tensor(affinities, dtype=torch.float64)
    return Affinity(affinities.logit(), torch.ones_like(affinities, dtype=torch.bool), **options)


def ordered_subsets(num_items, size):
    """(list, 1, position)"""
    return torch.tensor(list(permutations(range(num_items), size)))[:, None, :]


def test_probabilities_anybody_can_compute():
    policy = policy_of([[0.6, 0.4, 0.2]], epsilon=0.1)
    # (0.1 / 3 + 0.9 * 0.4 / 1.2) * (0.1 / 2 + 0.9 * 0.2 / 0.8)
    assert policy.log_prob(torch.tensor([[1, 2]])).exp().item() == pytest.approx((1 / 30 + 0.3) * 0.275)
    assert policy.log_prob(torch.tensor([[1, 2, 0]])).exp().item() == pytest.approx((1 / 30 + 0.3) * 0.275)
    assert policy.log_prob(torch.tensor([[1, 2]]), cutoff=1).exp().item() == pytest.approx(1 / 3)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(("num_items", "size"), [(n, m) for n in range(1, 6) for m in range(1, n + 1)])
def test_probabilities_of_all_ordered_subsets_sum_to_one(num_items, size, epsilon):
    policy = policy_of(AFFINITIES[:, :num_items], epsilon=epsilon, max_positions=size)
    total = policy.log_prob(ordered_subsets(num_items, size)).exp().sum()
    assert total.item() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_samples_have_the_stated_frequencies(size, epsilon):
    num_samples = 20_000
    policy = policy_of(AFFINITIES[:, :4], epsilon=epsilon, max_positions=size)
    samples = policy.sample(num_samples, generator=torch.Generator().manual_seed(0)).squeeze(1)
    lists = ordered_subsets(4, size)
    expected = num_samples * policy.log_prob(lists).exp().squeeze(-1)
    observed = torch.stack([(samples == each).all(-1).sum() for each in lists])
    assert observed.sum() == num_samples
    assert chisquare(observed.numpy(), expected.numpy()).pvalue > 1e-3


def test_without_chance_it_is_plackett_luce_over_log_affinities():
    scores, mask = AFFINITIES.logit(), torch.ones(1, 5, dtype=torch.bool)
    lists = ordered_subsets(5, 5)
    torch.testing.assert_close(
        Affinity(scores, mask, epsilon=0.0).log_prob(lists), PlackettLuce(AFFINITIES.log(), mask).log_prob(lists)
    )


def test_each_query_may_have_its_own_share_of_chance():
    both = policy_of(AFFINITIES.repeat(2, 1), epsilon=torch.tensor([0.0, 0.7]))
    rankings = torch.tensor([[3, 1, 0], [3, 1, 0]])
    alone = [policy_of(AFFINITIES, epsilon=share).log_prob(rankings[:1]).item() for share in (0.0, 0.7)]
    assert both.log_prob(rankings).tolist() == pytest.approx(alone)


def test_padding_and_other_queries_change_nothing():
    scores = torch.tensor([[0.3, 99.0, -1.0, 99.0], [1.0, 2.0, 3.0, 4.0]], requires_grad=True)
    mask = torch.tensor([[True, False, True, False], [True] * 4])
    policy = Affinity(scores, mask, epsilon=0.2, max_positions=3)
    assert policy.mode()[0, :2].tolist() == [0, 2]
    samples = policy.sample(200, generator=torch.Generator().manual_seed(0))
    assert samples.shape == (200, 2, 3)
    assert (samples[:, 0, :2].sort(-1).values == torch.tensor([0, 2])).all()
    log_prob = policy.log_prob(torch.tensor([[2, 0, 1], [0, 1, 2]]))
    alone = Affinity(torch.tensor([[0.3, -1.0]]), torch.ones(1, 2, dtype=torch.bool), epsilon=0.2)
    assert log_prob[0].item() == pytest.approx(alone.log_prob(torch.tensor([[1, 0]])).item(), abs=1e-6)
    log_prob.sum().backward()
    assert scores.grad[0, [1, 3]].tolist() == [0.0, 0.0]
    assert (scores.grad[1] != 0).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scores", [[math.log(1e-30)] * 4, [0.0] * 4, [-1e4, 1e4, -2e4, 0.0], [1e4] * 4, [-1e4] * 4])
def test_vanishing_and_equal_affinities_stay_finite(scores, dtype, epsilon):
    scores = torch.tensor([scores], dtype=dtype, requires_grad=True)
    policy = Affinity(scores, torch.ones(1, 4, dtype=torch.bool), epsilon=epsilon)
    log_prob = policy.log_prob(torch.cat([policy.sample(3), torch.tensor([[[2, 0, 1, 3]]])]))
    log_prob.sum().backward()
    assert torch.isfinite(log_prob).all()
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 1.5}, "epsilon is a share of choices, from 0 to 1; got 1.5"),
        ({"epsilon": torch.tensor([0.1, math.nan])}, "epsilon is a share"),
        ({"max_positions": 0}, "max_positions must be at least 1"),
    ],
)
def test_wrong_exploration_is_named(options, message):
    with pytest.raises(RankPolicyError, match=message):
        policy_of(AFFINITIES, **options)
    with pytest.raises(RankPolicyError, match=r"For one query add an axis: scores\[None\]"):
        Affinity(torch.zeros(3), torch.ones(3, dtype=torch.bool))
