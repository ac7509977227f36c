"""Metrics on a GPU against those of the CPU kernel and of the torch functions."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rankpolicy.data import from_arrays, make_web_search
from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.evaluation.on_device import DeviceMeans, mean_of_scores
from rankpolicy.kernels.metrics.values import evaluate_queries, metric_terms
from rankpolicy.kernels.triton.metrics import metric_values
from rankpolicy.metrics import parse_metric, term_table
from rankpolicy.types import Conventions

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

ALL_METRICS = "dcg@5 + ap + rr + p@4 + recall@7 + err + avg_rank@6 + success@2 + p + ndcg@3 + ndcg + ap@3"


def ragged(sizes, scale, *, num_grades=4, ties=False):
    generator = np.random.default_rng(0)
    count = sum(sizes)
    scores = scale * generator.uniform(-1, 1, count)
    if ties:
        scores = np.round(scores)
    labels = generator.integers(0, num_grades, count).astype(np.float64)
    labels[: sizes[0]] = 0.0  # a query without relevant items
    return scores.astype(np.float32), labels, np.cumsum([0, *sizes])


def run(device, scores, labels, offsets, metrics, conventions=Conventions()):
    table = term_table(parse_metric(metrics, conventions=conventions))
    found = metric_values(
        torch.from_numpy(scores).to(device),
        torch.from_numpy(labels.astype(np.float32)).to(device),
        torch.from_numpy(offsets).to(device),
        torch.arange(len(offsets) - 1, device=device),
        longest=int(np.diff(offsets).max()),
        kinds=tuple(table.kinds.tolist()),
        cutoffs=tuple(table.cutoffs.tolist()),
        conventions=conventions,
    )
    terms = metric_terms(
        table.kinds, table.cutoffs, table.weights, conventions=conventions, num_positions=int(np.diff(offsets).max())
    )
    expected = evaluate_queries(scores.astype(np.float64), labels, offsets, terms=terms)
    return found.values.cpu().numpy(), found.are_open.cpu().numpy(), expected


@pytest.mark.parametrize(
    ("metrics", "conventions"),
    [
        (ALL_METRICS, Conventions()),
        ("ndcg@3 + dcg@4 + ap", Conventions(gain="linear", empty=1.0, relevant_from=2)),
        ("rr", Conventions(empty=0.0)),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_all_metrics_equal_those_of_the_cpu(device, metrics, conventions, scale):
    found, are_open, expected = run(device, *ragged([3, 1, 17, 5], scale), metrics, conventions)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert not are_open.any()


@pytest.mark.parametrize("metrics", ["ndcg@3", "ap", "ndcg@3 + p@2"])
def test_queries_whose_values_hang_on_ties_are_named(device, metrics):
    scores, labels, offsets = ragged([4, 9, 9, 12, 9, 9], 3.0, num_grades=2, ties=True)
    found, are_open, expected = run(device, scores, labels, offsets, metrics)
    np.testing.assert_allclose(found[~are_open], expected[~are_open], rtol=1e-5, atol=1e-6)
    assert are_open.any()
    labels[:] = 1.0
    scores[:] = 0.0
    found, are_open, expected = run(device, scores, labels, offsets, "ap")
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert not are_open.any()


@pytest.mark.parametrize("metric", ["ndcg@10", "mean(ap, 2*rr@3) + 1"])
@pytest.mark.parametrize("has_weights", [False, True])
def test_means_on_the_device_are_those_of_the_host(device, metric, has_weights):
    data = make_web_search(6, random_state=0)
    sizes = np.minimum(data.sizes, [3, 9, 20, 4, 20, 9])
    rows = np.concatenate([np.arange(size) + start for start, size in zip(data.offsets, sizes, strict=False)])
    weights = np.arange(6.0) if has_weights else None
    small = replace(from_arrays(data.features[rows], data.labels[rows], group=sizes), query_weights=weights)
    scores = np.random.default_rng(1).normal(size=small.num_items).astype(np.float32)
    measure = parse_metric(metric)
    means = DeviceMeans.of(small, measure, device)
    expected = mean_over_queries(evaluate_scores(scores, small, [measure])[:, 0], small.query_weights)
    assert means(torch.from_numpy(scores).to(device)) == (pytest.approx(expected, rel=1e-6), 0)
    assert means(torch.zeros(small.num_items, device=device))[1] > 0
    in_fit = mean_of_scores(small, measure, device)
    assert in_fit(torch.zeros(small.num_items, device=device)) == pytest.approx(
        mean_over_queries(evaluate_scores(np.zeros(small.num_items), small, [measure])[:, 0], small.query_weights)
    )


@pytest.mark.parametrize(("longest", "metrics"), [(120, ALL_METRICS), (1000, "ndcg@10 + rr@10"), (5000, "ndcg@10")])
def test_long_lists(only_on_gpu, longest, metrics):
    found, are_open, expected = run(only_on_gpu, *ragged([longest // 2, longest, 7], 3.0), metrics)
    np.testing.assert_allclose(found[~are_open], expected[~are_open], rtol=1e-4, atol=1e-5)
