import numba
import numpy as np
import pytest
import torch

from rankpolicy.gradients import pl_rank_of_rankings
from rankpolicy.kernels.plackett_luce.pl_rank import pl_rank_queries
from rankpolicy.metrics import parse_metric

REWARDS = ["dcg", "ndcg@10", "ndcg", "p@3", "recall@5", "rbp", "-avg_rank", "ndcg@3 + 0.5*p@8 - 0.2*recall@2"]


def random_queries(num_queries=6, num_items=30, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(num_queries, num_items))
    labels = rng.integers(0, 4, scores.shape).astype(np.float64)
    mask = rng.random(scores.shape) < 0.8
    labels[0] = 0
    mask[1] = False
    mask[1, 7] = True
    return scores, labels, mask


def run_kernel(scores, labels, mask, reward, *, num_samples=7, seed=11):
    forms = reward.additive_forms(torch.from_numpy(labels), torch.from_numpy(mask))
    weights, values = (torch.stack(parts).numpy() for parts in zip(*forms, strict=True))
    cutoff = int(np.flatnonzero(weights.any(0))[-1]) + 1
    return pl_rank_queries(
        scores,
        mask,
        rank_weights=weights[:, :cutoff],
        item_values=values,
        num_samples=num_samples,
        seed=seed,
        keep_rankings=True,
    )


def with_padding_last(rankings, mask):
    """The kernel marks positions past a query's end with -1; the reference wants padded items there."""
    filled = torch.from_numpy(rankings).clone()
    for query, row in enumerate(mask):
        padded = torch.from_numpy(np.flatnonzero(~row))
        past_end = filled[0, query] < 0
        filled[:, query, past_end] = padded[: int(past_end.sum())]
    return filled


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e3, 1e4])
@pytest.mark.parametrize("name", REWARDS)
def test_kernel_equals_reference_on_the_same_rankings(name, scale):
    scores, labels, mask = random_queries()
    scores, reward = scores * scale, parse_metric(name)
    gradient, utility, rankings = run_kernel(scores, labels, mask, reward)
    reference = pl_rank_of_rankings(
        torch.from_numpy(scores),
        torch.from_numpy(labels),
        torch.from_numpy(mask),
        rankings=with_padding_last(rankings, mask),
        reward=reward,
    )
    np.testing.assert_allclose(gradient, reference.gradient.numpy(), atol=1e-9)
    np.testing.assert_allclose(utility, reference.reward.numpy(), atol=1e-12)


def test_same_seed_same_result_whatever_the_number_of_threads():
    queries = random_queries(num_queries=40)
    reward = parse_metric("ndcg@10")
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
