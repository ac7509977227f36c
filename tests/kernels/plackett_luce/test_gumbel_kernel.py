import numba
import numpy as np
import pytest
import torch

from rankpolicy.gradients import gumbel_of_draws
from rankpolicy.gradients.gumbel import cascade_form, gumbel_exposure_of_draws
from rankpolicy.kernels.plackett_luce.gumbel import Cascade, gumbel_exposures, gumbel_queries
from rankpolicy.metrics import parse_metric
from tests.kernels.plackett_luce.test_pl_rank_kernel import random_queries, with_padding_last

REWARDS = [
    "dcg",
    "ndcg@10",
    "ndcg",
    "p@3",
    "-avg_rank",
    "-avg_rank@4",
    "ap",
    "ap@5",
    "rr",
    "rr@3",
    "err",
    "err@10",
    "mean(ap, ndcg@3, err) - 0.5*rr@8",
]


def run_kernel(scores, labels, mask, reward, *, num_samples=7, seed=11):
    form = cascade_form(reward, torch.from_numpy(labels), torch.from_numpy(mask))
    gradient, utility, draws = gumbel_queries(
        scores,
        mask,
        Cascade(*(part.numpy() for part in form[:4])),
        num_swaps=form.slopes.shape[-1],
        num_samples=num_samples,
        seed=seed,
        keep_draws=True,
    )
    return gradient, utility + form.constant.numpy(), *draws


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e3, 1e4])
@pytest.mark.parametrize("name", REWARDS)
def test_kernel_equals_reference_on_the_same_draws(name, scale):
    scores, labels, mask = random_queries()
    scores, reward = scores * scale, parse_metric(name)
    gradient, utility, rankings, noisy_scores = run_kernel(scores, labels, mask, reward)
    reference = gumbel_of_draws(
        torch.from_numpy(scores),
        torch.from_numpy(labels),
        torch.from_numpy(mask),
        rankings=with_padding_last(rankings, mask),
        noisy_scores=torch.from_numpy(noisy_scores),
        reward=reward,
    )
    np.testing.assert_allclose(gradient, reference.gradient.numpy(), atol=1e-9)
    np.testing.assert_allclose(utility, reference.reward.numpy(), atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("cutoff", [1, 10, 30])
def test_exposure_kernel_equals_reference_on_the_same_draws(cutoff, scale):
    scores, _, mask = random_queries()
    scores = scores * scale
    weights = np.where(np.arange(30) < cutoff, 1 / np.log2(np.arange(2, 32)), 0.0)
    exposure, (rankings, noisy_scores) = gumbel_exposures(
        scores, mask, weights, num_swaps=min(cutoff, 29), num_samples=5, seed=3, keep_draws=True
    )
    reference = gumbel_exposure_of_draws(
        torch.from_numpy(scores),
        torch.from_numpy(mask),
        torch.from_numpy(weights),
        rankings=with_padding_last(rankings, mask),
        noisy_scores=torch.from_numpy(noisy_scores),
    )
    np.testing.assert_allclose(exposure, reference.numpy(), atol=1e-9)


# Given the order, the k-th gap is exponential with the rate of all still to come, in the linear path and in log space (spread past 500).
@pytest.mark.parametrize("scores", [[1.0, 0.0, -1.0], [1.0, 0.0, -600.0]])
def test_drawn_noise_is_gumbel(scores):
    num_queries = 20_000
    padded = np.tile(np.array(scores), (num_queries, 1))
    mask, weights = np.ones_like(padded, dtype=bool), np.array([3.0, 2.0, 0.0])
    _, (rankings, noisy_scores) = gumbel_exposures(
        padded, mask, weights, num_swaps=2, num_samples=1, seed=4, keep_draws=True
    )
    items = np.take_along_axis(noisy_scores[0], np.argsort(rankings[0], axis=1), axis=1)
    noise = items - padded
    means, deviations = noise.mean(0), noise.std(0)
    assert (np.abs(means - np.euler_gamma) <= 4 * deviations / np.sqrt(num_queries)).all()
    np.testing.assert_allclose(deviations, np.pi / np.sqrt(6), rtol=0.04)


def test_same_seed_same_result_whatever_the_number_of_threads():
    queries = random_queries(num_queries=40)
    reward = parse_metric("mean(ap, ndcg@10)")
    results = []
    before = numba.get_num_threads()
    for num_threads in (1, before, 1):
        numba.set_num_threads(num_threads)
        results.append(run_kernel(*queries, reward))
    numba.set_num_threads(before)
    for result in results[1:]:
        for array, first in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(array, first)
    assert not np.array_equal(run_kernel(*queries, reward, seed=12)[2], results[0][2])
