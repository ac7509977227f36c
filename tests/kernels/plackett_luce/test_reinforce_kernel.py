import math

import numba
import numpy as np
import pytest
import torch

from rankpolicy.gradients import CONTROLS, reinforce_of_rankings
from rankpolicy.kernels.metrics.values import metric_terms
from rankpolicy.kernels.plackett_luce.reinforce import WeightedQueries, reinforce_queries
from rankpolicy.metrics import parse_metric, term_table
from rankpolicy.policies import PlackettLuce
from tests.enumeration import all_rankings

REWARDS = [
    "dcg",
    "ndcg@10",
    "ndcg",
    "ap",
    "ap@5",
    "rr",
    "p@3",
    "err@10",
    "recall@5",
    "mean(ap, ndcg@3, err)",
    "-avg_rank",
]


def random_queries(num_queries=6, num_items=30, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(num_queries, num_items))
    labels = rng.integers(0, 4, scores.shape).astype(np.float64)
    mask = rng.random(scores.shape) < 0.8
    labels[0] = 0
    mask[1] = False
    mask[1, 7] = True
    return scores, labels, mask


def run_weighted(queries, reward, **options):
    """Gradient in log weights, mean of each term, and the lists."""
    settings = {"num_samples": 7, "control": "leave_one_out", "seed": 11, "keep_rankings": True} | options
    terms = metric_terms(*term_table(reward), conventions=reward.conventions, num_positions=queries.mask.shape[-1])
    return reinforce_queries(queries, terms=terms, **settings | {"control": CONTROLS[settings["control"]].code})


def run_kernel(scores, labels, mask, reward, **options):
    """Plackett-Luce: scores are log weights and nothing is chosen by chance."""
    queries = WeightedQueries(scores, scores, labels, mask, np.zeros(len(scores)))
    gradient, values, rankings = run_weighted(queries, reward, **options)
    return gradient, values @ term_table(reward).weights, rankings


def with_padding_last(rankings, mask):
    """The kernel marks positions past a query's end with -1; the reference wants padded items there."""
    filled = torch.from_numpy(rankings).clone()
    for query, row in enumerate(mask):
        padded = torch.from_numpy(np.flatnonzero(~row))
        past_end = filled[0, query] < 0
        filled[:, query, past_end] = padded[: int(past_end.sum())]
    return filled


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e4])
@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("name", REWARDS)
def test_kernel_equals_reference_on_the_same_rankings(name, control, scale):
    scores, labels, mask = random_queries()
    scores, reward = scores * scale, parse_metric(name)
    gradient, utility, rankings = run_kernel(scores, labels, mask, reward, control=control)
    reference = reinforce_of_rankings(
        torch.from_numpy(scores),
        torch.from_numpy(labels),
        torch.from_numpy(mask),
        rankings=with_padding_last(rankings, mask),
        reward=reward,
        control=control,
    )
    np.testing.assert_allclose(gradient, reference.gradient.numpy(), atol=1e-10)
    np.testing.assert_allclose(utility, reference.reward.numpy(), atol=1e-12)


def test_same_seed_same_result_whatever_the_number_of_threads():
    scores, labels, mask = random_queries(num_queries=40)
    reward = parse_metric("mean(ap, ndcg@10)")
    results = []
    before = numba.get_num_threads()
    for num_threads in (1, before, 1):
        numba.set_num_threads(num_threads)
        results.append(run_kernel(scores, labels, mask, reward))
    numba.set_num_threads(before)
    for result in results[1:]:
        for array, first in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(array, first)
    other_seed = run_kernel(scores, labels, mask, reward, seed=12)
    assert not np.array_equal(other_seed[2], results[0][2])


# Flat scores let repeats of drawing run to the end, peaked ones hand over to the race, and a spread past 500 races in log space.
@pytest.mark.parametrize("scores", [[0.0, 0.1, -0.1, 0.2], [5.0, 1.0, 0.0, 0.5], [600.0, 1.0, 0.0, 0.5]])
@pytest.mark.parametrize("cutoff", [1, 2, 4])
def test_drawn_rankings_have_plackett_luce_frequencies(scores, cutoff):
    num_queries, num_samples = 100, 300
    padded = np.tile(scores, (num_queries, 1))
    labels, mask = np.ones_like(padded), np.ones_like(padded, dtype=bool)
    rankings = run_kernel(padded, labels, mask, parse_metric(f"p@{cutoff}"), num_samples=num_samples)[2]
    drawn = torch.from_numpy(rankings).reshape(-1, cutoff)
    prefixes = torch.unique(all_rankings(4)[..., :cutoff], dim=0)
    policy = PlackettLuce(torch.tensor([scores], dtype=torch.float64), torch.ones(1, 4, dtype=torch.bool))
    for prefix in prefixes:
        probability = policy.log_prob(prefix).exp().item()
        frequency = (drawn == prefix).all(-1).double().mean().item()
        assert abs(frequency - probability) <= 4 * math.sqrt(probability * (1 - probability) / len(drawn)) + 1e-9


def test_skipped_empty_queries_teach_nothing():
    from rankpolicy import Conventions

    scores, labels, mask = random_queries()
    reward = parse_metric("ndcg@10", Conventions(empty="skip"))
    gradient, utility, _ = run_kernel(scores, labels, mask, reward)
    assert np.isnan(utility[0])
    assert (gradient[0] == 0).all()
    assert np.isfinite(gradient).all()
