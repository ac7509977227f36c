import numba
import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from rankpolicy import Conventions
from rankpolicy.gradients import CONTROLS, affinity_reinforce_of_rankings
from rankpolicy.kernels.plackett_luce.reinforce import WeightedQueries
from rankpolicy.metrics import parse_metric
from rankpolicy.policies import Affinity
from tests.kernels.plackett_luce.test_reinforce_kernel import random_queries, run_weighted, with_padding_last
from tests.policies.test_affinity import ordered_subsets

REWARDS = ["ap", "ndcg@10", "dcg@5", "mean(ap, rr)", "mean(ap, p@3, p@5, ndcg@3, ndcg@5)", "err@10", "-avg_rank"]


def run_kernel(scores, labels, mask, reward, *, epsilon=0.1, **options):
    """The affinity policy: weights are sigmoid(score), whose logarithm has the slope sigmoid(-score)."""
    given = torch.from_numpy(scores)
    log_affinities = torch.nn.functional.logsigmoid(given).numpy()
    queries = WeightedQueries(log_affinities, scores, labels, mask, np.full(len(scores), epsilon))
    gradient, values, rankings = run_weighted(queries, reward, **{"control": "greedy"} | options)
    return gradient * torch.sigmoid(-given).numpy(), values, rankings


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("max_positions", [None, 6])
@pytest.mark.parametrize("name", REWARDS)
def test_kernel_equals_reference_on_the_same_lists(name, max_positions, epsilon, scale):
    scores, labels, mask = random_queries()
    scores, reward = scores * scale, parse_metric(name)
    for control in CONTROLS:
        gradient, values, rankings = run_kernel(
            scores, labels, mask, reward, epsilon=epsilon, max_positions=max_positions, control=control
        )
        policy = Affinity(torch.from_numpy(scores), torch.from_numpy(mask), epsilon, max_positions)
        reference = affinity_reinforce_of_rankings(
            policy,
            torch.from_numpy(labels),
            rankings=with_padding_last(rankings, mask),
            reward=reward,
            control=control,
        )
        np.testing.assert_allclose(gradient, reference.gradient.numpy(), atol=1e-10)
        for index, term in enumerate(reward.terms):
            expected = reference.metrics[str(term.factors[0])].numpy()
            np.testing.assert_allclose(values[:, index], expected, atol=1e-12)


# Flat affinities, peaked ones, and a spread past 500 that is drawn in log space.
@pytest.mark.parametrize("scores", [[0.0, 0.1, -0.1, 0.2], [5.0, -3.0, -2.0, 0.5], [-600.0, 1.0, 0.0, 0.5]])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_drawn_lists_have_the_frequencies_of_the_policy(scores, epsilon, size):
    padded = np.tile(scores, (100, 1))
    labels, mask = np.ones_like(padded), np.ones_like(padded, dtype=bool)
    rankings = run_kernel(
        padded, labels, mask, parse_metric("ap"), epsilon=epsilon, max_positions=size, num_samples=300
    )[2]
    drawn, lists = torch.from_numpy(rankings).reshape(-1, size), ordered_subsets(4, size)
    policy = Affinity(torch.tensor([scores], dtype=torch.float64), torch.ones(1, 4, dtype=torch.bool), epsilon)
    expected = len(drawn) * policy.log_prob(lists).exp().squeeze(-1).numpy()
    observed = torch.stack([(drawn == each).all(-1).sum() for each in lists]).numpy()
    assert observed.sum() == len(drawn)
    common = expected > 5  # the others are too rare for the chi-square distribution
    assert observed[~common].sum() <= expected[~common].sum() + 10
    expected = expected[common] * observed[common].sum() / expected[common].sum()
    assert common.sum() == 1 or chisquare(observed[common], expected).pvalue > 1e-3


def test_same_seed_same_result_whatever_the_number_of_threads():
    scores, labels, mask = random_queries(num_queries=40)
    results = []
    before = numba.get_num_threads()
    for num_threads in (1, before):
        numba.set_num_threads(num_threads)
        results.append(run_kernel(scores, labels, mask, parse_metric("ap")))
    numba.set_num_threads(before)
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)


def test_padding_changes_nothing():
    scores, labels, mask = random_queries()
    wider = [np.pad(part, ((0, 0), (0, 9)), constant_values=fill) for part, fill in ((scores, 9.0), (labels, 3.0))]
    narrow = run_kernel(scores, labels, mask, parse_metric("mean(ap, ndcg@10)"), max_positions=12)
    wide = run_kernel(*wider, np.pad(mask, ((0, 0), (0, 9))), parse_metric("mean(ap, ndcg@10)"), max_positions=12)
    # Sums over wider rows are added up in another order, on some processors.
    np.testing.assert_allclose(wide[0][:, :-9], narrow[0], rtol=1e-12, atol=1e-15)
    assert (wide[0][:, -9:] == 0).all()
    np.testing.assert_allclose(wide[1], narrow[1], rtol=1e-12)


def test_a_short_list_is_measured_against_the_whole_query():
    """Of three relevant items two fit into the list: AP is 2/3 and NDCG (1 + 1/log2 3) / (1 + 1/log2 3 + 1/2)."""
    scores, labels = np.array([[9.0, 8.0, 7.0]]), np.ones((1, 3))
    reward = parse_metric("mean(ap, ndcg)")
    values = run_kernel(scores, labels, labels > 0, reward, epsilon=0.0, max_positions=2)[1]
    by_metric = dict(zip([str(term.factors[0]) for term in reward.terms], values[0], strict=True))
    assert by_metric["ap"] == pytest.approx(2 / 3)
    assert by_metric["ndcg"] == pytest.approx((1 + 1 / np.log2(3)) / (1.5 + 1 / np.log2(3)))


def test_skipped_empty_queries_teach_nothing():
    scores, labels, mask = random_queries()
    gradient, values, _ = run_kernel(scores, labels, mask, parse_metric("ndcg@10", Conventions(empty="skip")))
    assert np.isnan(values[0]).all()
    assert (gradient[0] == 0).all()
    assert np.isfinite(gradient).all()
