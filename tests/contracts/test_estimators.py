"""What every estimator of dU/dscores must do, over the tables that list them."""

import math
import sys

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

from rankpolicy.arrays import gather
from rankpolicy.gradients import (
    AFFINITY_ESTIMATORS,
    ESTIMATORS,
    gumbel_of_draws,
    lambda_rank,
    pl_rank_of_rankings,
    reinforce_of_rankings,
)
from rankpolicy.gradients.gumbel import sample_noisy_scores
from rankpolicy.metrics import as_reward, parse_metric
from rankpolicy.policies import Affinity, PlackettLuce
from rankpolicy.policies.race import race_exposure
from rankpolicy.types import RankPolicyError
from tests.enumeration import all_rankings

SCORES = torch.tensor([[0.5, -1.0, 0.0, 1.0, 0.2]], dtype=torch.float64)
LABELS = torch.tensor([[1.0, 0.0, 2.0, 0.0, 3.0]], dtype=torch.float64)


def first_label(rankings, labels, mask):
    return gather(labels, rankings[..., :1])[..., 0]


ADDITIVE = ["ndcg@3", "dcg", "-avg_rank", "0.5*p@2 + 0.5*recall@4"]
CASCADE = ["ap", "mean(rr, err@4)"]
REWARDS = [*ADDITIVE, *CASCADE, "ndcg@3 * ap", first_label]
ALL = [("plackett_luce", name) for name in ESTIMATORS] + [("affinity", name) for name in AFFINITY_ESTIMATORS]
TABLES = {"plackett_luce": ESTIMATORS, "affinity": AFFINITY_ESTIMATORS}
POLICIES = {"plackett_luce": PlackettLuce, "affinity": Affinity}


@pytest.fixture(params=ALL, ids="-".join)
def member(request):
    return request.param


def estimate(member, scores, labels, mask, *, reward="ndcg@3", num_samples=8, seed=0, **options):
    policy, name = member
    generator = torch.Generator().manual_seed(seed)
    asked = parse_metric(reward) if isinstance(reward, str) else as_reward(reward)
    return TABLES[policy].named(name)(
        scores, labels, mask, reward=asked, num_samples=num_samples, generator=generator, **options
    )


def enumerated_gradient(member, reward):
    """dU/dscores of the sum over all rankings of probability times reward, by autograd."""
    scores, mask = SCORES.clone().requires_grad_(), torch.ones_like(SCORES, dtype=torch.bool)
    rankings = all_rankings(5)
    asked = parse_metric(reward) if isinstance(reward, str) else as_reward(reward)
    utility = (POLICIES[member[0]](scores, mask).log_prob(rankings).exp() * asked(rankings, LABELS, mask)).sum()
    return torch.autograd.grad(utility, scores)[0][0], utility.item()


def queries(num_queries=5, num_items=7):
    generator = torch.Generator().manual_seed(4)
    scores = torch.randn(num_queries, num_items, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 4, scores.shape, generator=generator).double()
    mask = torch.arange(num_items) < torch.tensor([7, 6, 4, 2, 1])[:num_queries, None]
    return scores, labels, mask


@pytest.mark.parametrize("reward", REWARDS, ids=lambda reward: getattr(reward, "__name__", reward))
def test_unbiased_against_all_rankings(member, reward):
    serves = {"exact": ADDITIVE, "pl_rank": ADDITIVE, "gumbel": ADDITIVE + CASCADE}.get(member[1], REWARDS)
    copies = 1500
    arrays = (SCORES.repeat(copies, 1), LABELS.repeat(copies, 1), torch.ones(copies, 5, dtype=torch.bool))
    if reward not in serves:
        with pytest.raises(RankPolicyError, match="estimator='reinforce'"):
            estimate(member, *arrays, reward=reward)
        return
    found = estimate(member, *arrays, reward=reward, seed=1)
    gradient, utility = enumerated_gradient(member, reward)
    error = (found.gradient.mean(0) - gradient).abs()
    standard_error = found.gradient.std(0) / math.sqrt(copies)
    # The coarse quadrature of exact gradients errs by up to a thousandth for lists this short.
    assert (error <= 4 * standard_error + 1e-3 * gradient.abs().max()).all(), (error / standard_error).tolist()
    spread = found.reward.std().item() / math.sqrt(copies)
    assert abs(found.reward.mean().item() - utility) <= 4 * spread + 1e-3 * abs(utility)


def test_padding_changes_nothing(member):
    scores, labels, mask = queries()
    narrow = estimate(member, scores, labels, mask)
    wide = estimate(member, pad(scores, (0, 3), value=50.0), pad(labels, (0, 3), value=3.0), pad(mask, (0, 3)))
    torch.testing.assert_close(wide.gradient[:, :7], narrow.gradient)
    torch.testing.assert_close(wide.reward, narrow.reward)
    assert (wide.gradient[:, 7:] == 0).all()
    assert (narrow.gradient[~mask] == 0).all()


def test_later_queries_change_nothing(member):
    arrays = queries()
    together = estimate(member, *arrays)
    first_two = estimate(member, *(array[:2] for array in arrays))
    torch.testing.assert_close(first_two.gradient, together.gradient[:2])
    torch.testing.assert_close(first_two.reward, together.reward[:2])


@pytest.mark.parametrize("reward", ["ndcg@3", first_label], ids=["ndcg@3", "first_label"])
def test_the_same_seed_gives_the_same_and_torchs_own_generator_rests(member, reward):
    if reward is first_label and member[1] not in ("auto", "reinforce"):
        return
    before = torch.get_rng_state()
    first, second = (estimate(member, *queries(), reward=reward, seed=9) for _ in range(2))
    assert torch.equal(first.gradient, second.gradient)
    assert torch.equal(first.reward, second.reward)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_extreme_scores_and_empty_queries_stay_finite(member, scale, dtype):
    scores, labels, mask = queries()
    labels[0] = 0
    found = estimate(member, (scale * scores).to(dtype), labels.to(dtype), mask)
    assert torch.isfinite(found.gradient).all()
    assert torch.isfinite(found.reward).all()
    assert found.gradient.dtype == found.reward.dtype == dtype
    assert (found.gradient[0] == 0).all()


def test_unknown_names_are_refused():
    with pytest.raises(RankPolicyError, match=r"Unknown estimator 'gumble'\. Did you mean 'gumbel'"):
        ESTIMATORS.named("gumble")


@pytest.mark.parametrize("reward", ["ndcg@3", "0.5*p@2 + 0.5*recall@4"])
def test_arrays_give_the_estimates_of_tensors(member, reward, monkeypatch):
    for module in ("gumbel", "pl_rank", "reinforce"):
        monkeypatch.setattr(sys.modules[f"rankpolicy.gradients.{module}"], "random_seed", lambda generator, *, like: 5)
    kind, name = member
    scores, labels, mask = queries()
    of_tensors = TABLES[kind][name](scores, labels, mask, reward=as_reward(reward), num_samples=16)
    given = (array.numpy() for array in (scores, labels, mask))
    of_arrays = TABLES[kind][name](*given, reward=as_reward(reward), num_samples=16)
    for field in ("gradient", "reward"):
        got = getattr(of_arrays, field)
        assert isinstance(got, np.ndarray)
        np.testing.assert_allclose(got, getattr(of_tensors, field).numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("reward", ["ndcg@3 * ap", first_label])
def test_sampled_estimates_of_arrays_are_those_of_the_same_rankings(reward):
    scores, labels, mask = queries()
    rankings = PlackettLuce(scores, mask).sample(20, generator=torch.Generator().manual_seed(2))
    of_tensors = reinforce_of_rankings(scores, labels, mask, rankings=rankings, reward=as_reward(reward))
    given = (array.numpy() for array in (scores, labels, mask))
    of_arrays = reinforce_of_rankings(*given, rankings=rankings.numpy(), reward=as_reward(reward))
    np.testing.assert_allclose(of_arrays.gradient, of_tensors.gradient.numpy(), rtol=1e-12, atol=1e-14)
    drawn = [
        ESTIMATORS["reinforce"](
            *(array.numpy() for array in (scores, labels, mask)),
            reward=as_reward(reward),
            num_samples=4,
            generator=np.random.default_rng(1),
        ).gradient
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*drawn)


def test_references_of_arrays_are_those_of_tensors():
    scores, labels, mask = queries()
    given = tuple(array.numpy() for array in (scores, labels, mask))
    reward = as_reward("ndcg@3")
    noisy = {"num_samples": 6, "cutoff": 4, "generator": torch.Generator().manual_seed(1)}
    rankings, noisy_scores = sample_noisy_scores(scores, mask, **noisy)
    draws = {"rankings": rankings, "noisy_scores": noisy_scores}
    pairs = [
        (
            gumbel_of_draws(scores, labels, mask, **draws, reward=reward).gradient,
            gumbel_of_draws(*given, **{key: array.numpy() for key, array in draws.items()}, reward=reward).gradient,
        ),
        (
            pl_rank_of_rankings(scores, labels, mask, rankings=rankings, reward=reward).gradient,
            pl_rank_of_rankings(*given, rankings=rankings.numpy(), reward=reward).gradient,
        ),
        (lambda_rank(scores, labels, mask, reward=reward), lambda_rank(*given, reward=reward)),
        (
            race_exposure(scores, mask, torch.tensor([1.0, 0.5]).double()),
            race_exposure(given[0], given[2], np.array([1.0, 0.5])),
        ),
    ]
    for of_tensors, of_arrays in pairs:
        assert isinstance(of_arrays, np.ndarray)
        np.testing.assert_allclose(of_arrays, of_tensors.numpy(), rtol=1e-12, atol=1e-14)
