import math
import sys

import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.gradients import auto, gumbel, gumbel_exposure, gumbel_of_draws, pl_rank, reinforce
from rankpolicy.gradients.gumbel import sample_noisy_scores
from rankpolicy.metrics import METRICS, as_reward, parse_metric
from rankpolicy.policies import PlackettLuce
from tests.enumeration import all_rankings, enumerated_gradient

REWARDS = [
    *(f"{name}{cutoff}" for name, metric in METRICS.items() if metric.has_cascade for cutoff in ("", "@1", "@3")),
    "mean(ap, rr)",
    "0.7*ndcg@2 + 0.3*err@4",
    "ndcg - 0.5*p@2",
]
SCORES = torch.tensor([[0.5, -1.0, 0.0, 1.0, 0.2]], dtype=torch.float64)
LABELS = torch.tensor([[1.0, 0.0, 2.0, 0.0, 3.0]], dtype=torch.float64)
MASK = torch.ones_like(SCORES, dtype=torch.bool)


def repeated(num_queries):
    return tuple(part.repeat(num_queries, 1) for part in (SCORES, LABELS, MASK))


def without_kernel(monkeypatch):
    monkeypatch.setattr(sys.modules["rankpolicy.gradients.gumbel"], "HAS_NUMBA", False)


def assert_unbiased(estimates, expected):
    """Mean of independent estimates (query, ...) within 4 standard errors."""
    error = (estimates.mean(0) - expected).abs()
    standard_error = estimates.std(0) / math.sqrt(len(estimates))
    assert (error <= 4 * standard_error + 1e-12).all(), (error / standard_error).tolist()


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("name", REWARDS)
def test_estimates_agree_with_the_enumerated_gradient(name, is_compiled, monkeypatch):
    if not is_compiled:
        without_kernel(monkeypatch)
    reward = parse_metric(name)
    estimate = gumbel(*repeated(4000), reward=reward, num_samples=8, generator=torch.Generator().manual_seed(1))
    assert_unbiased(estimate.gradient, enumerated_gradient(SCORES, LABELS, reward)[0])
    rankings = all_rankings(5)
    utility = (PlackettLuce(SCORES, MASK).log_prob(rankings).exp() * reward(rankings, LABELS, MASK)).sum(0)
    assert_unbiased(estimate.reward, utility[0])


# Realistic lists; the factor by which variance falls is far larger (benchmarks/gradient_variance.py), this is what must always hold.
@pytest.mark.parametrize(
    "name", ["ndcg@10", "ndcg", "ap", "ap@10", "rr", "rr@10", "err", "err@10", "mean(ap, ndcg@10)"]
)
def test_variance_is_below_that_of_the_other_estimators(name):
    generator = torch.Generator().manual_seed(2)
    num_repeats, shape = 100, (4, 40)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    shares = torch.tensor([0.55, 0.22, 0.12, 0.07, 0.04])
    labels = torch.multinomial(shares, scores.numel(), replacement=True, generator=generator).reshape(shape).double()
    arrays = [part.repeat(num_repeats, 1) for part in (scores, labels, torch.ones_like(scores, dtype=torch.bool))]
    reward = parse_metric(name)
    variances = {}
    for estimator in (gumbel, reinforce, pl_rank) if reward.is_additive else (gumbel, reinforce):
        gradient = estimator(*arrays, reward=reward, num_samples=4, generator=generator).gradient
        variances[estimator.__name__] = gradient.reshape(num_repeats, *shape).var(0).sum().item()
    for other in variances.keys() - {"gumbel"}:
        assert 20 * variances["gumbel"] < variances[other], variances


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("cutoff", [1, 3, 5])
def test_exposure_estimates_agree_with_exact_exposure(cutoff, is_compiled, monkeypatch):
    if not is_compiled:
        without_kernel(monkeypatch)
    scores, _, mask = repeated(3000)
    mask[1::2, 3] = False  # every second query is shorter
    weights = 1 / torch.arange(2, 7, dtype=torch.float64).log2()
    weights[cutoff:] = 0
    exposure = gumbel_exposure(scores, mask, weights, num_samples=8, generator=torch.Generator().manual_seed(3))
    expected = PlackettLuce(scores[:2], mask[:2]).exposure(weights)
    for first in (0, 1):
        assert_unbiased(exposure[first::2], expected[first])
    assert (exposure[~mask] == 0).all()


@pytest.mark.parametrize("name", ["ndcg@10", "ndcg", "ap", "mean(err, rr)", "p@3", "-avg_rank"])
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
    rankings, noisy_scores = sample_noisy_scores(scores, mask, num_samples=4, cutoff=num_items, generator=generator)
    for result in (
        gumbel(scores, labels, mask, reward=reward, num_samples=4, generator=generator),
        gumbel_of_draws(scores, labels, mask, rankings=rankings, noisy_scores=noisy_scores, reward=reward),
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
    for name in ("ndcg@10", "mean(ap@10, err@10)"):
        estimate = gumbel(scores, labels, mask, reward=parse_metric(name), num_samples=4, generator=generator)
        assert torch.isfinite(estimate.gradient).all()
    assert torch.isfinite(gumbel_exposure(scores, mask, torch.ones(10), num_samples=4, generator=generator)).all()


def test_padding_changes_nothing_but_the_draw():
    reward, shape = parse_metric("ap + ndcg@3 - 0.1*avg_rank"), (4000, 8)
    scores, labels = torch.full(shape, 1e4, dtype=torch.float64), torch.full(shape, 4.0, dtype=torch.float64)
    mask = torch.zeros(shape, dtype=torch.bool)
    mask[:, [0, 2, 3, 5, 6]] = True
    scores[mask], labels[mask] = SCORES.repeat(4000, 1).flatten(), LABELS.repeat(4000, 1).flatten()
    gradient = gumbel(
        scores, labels, mask, reward=reward, num_samples=4, generator=torch.Generator().manual_seed(6)
    ).gradient
    assert (gradient[~mask] == 0).all()
    assert_unbiased(gradient[mask].reshape(-1, 5), enumerated_gradient(SCORES, LABELS, reward)[0])


@pytest.mark.parametrize(
    "reward", [parse_metric("ndcg*ap"), as_reward(lambda rankings, labels, mask: labels[:, 0])], ids=["product", "own"]
)
def test_other_rewards_are_refused_with_advice(reward):
    with pytest.raises(RankPolicyError, match="estimator='reinforce'"):
        gumbel(SCORES, LABELS, MASK, reward=reward)


def test_labels_past_the_scale_of_err_are_refused():
    with pytest.raises(RankPolicyError, match="err needs labels up to max_label"):
        gumbel(SCORES, LABELS + 3, MASK, reward=parse_metric("err"))


def test_auto_draws_gumbel_noise_for_cascades_and_long_lists_and_rankings_for_the_rest():
    def estimates(name, num_items, estimator, num_samples):
        generator = torch.Generator().manual_seed(7)
        scores = torch.randn(2, num_items, generator=generator)
        labels = torch.randint(0, 3, scores.shape, generator=generator).float()
        arrays = (scores, labels, torch.ones_like(scores, dtype=torch.bool))
        seeds = [torch.Generator().manual_seed(8) for _ in range(2)]
        return (
            auto(*arrays, reward=parse_metric(name), generator=seeds[0]).gradient,
            estimator(*arrays, reward=parse_metric(name), num_samples=num_samples, generator=seeds[1]).gradient,
        )

    torch.testing.assert_close(*estimates("mean(ap, ndcg@10)", 20, gumbel, 4))
    torch.testing.assert_close(*estimates("ndcg@10", 3000, gumbel, 4))
    torch.testing.assert_close(*estimates("ndcg * ap", 20, reinforce, 32))
