"""The compiled metrics against the torch functions, their specification."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from rankpolicy.metrics import METRICS, all_items, parse_metric, term_table
from rankpolicy.types import Conventions

kernels = pytest.importorskip("rankpolicy.kernels.metrics.values")

CODES = {name: metric.kernel_code for name, metric in METRICS.items() if metric.kernel_code is not None}
LABELS = st.one_of(
    st.lists(st.integers(0, 4).map(float), min_size=1, max_size=9),
    st.lists(st.floats(0, 4, width=16), min_size=1, max_size=9),
)


def kernel_value(
    metric: str, ranking: np.ndarray, labels: np.ndarray, cutoff: int | None, conventions: Conventions
) -> float:
    kinds, cutoffs = np.array([CODES[metric]]), np.array([cutoff or kernels.NO_CUTOFF])
    terms = kernels.metric_terms(kinds, cutoffs, np.array([2.0]), conventions=conventions, num_positions=len(labels))
    statistics = kernels.query_statistics(labels, terms)
    values = np.empty((1, 1))
    kernels.fill_values(terms, statistics, ranking[None], len(ranking), values)
    value, doubled = values[0, 0], kernels.weighted_sum(terms, values[0])
    assert doubled == pytest.approx(2 * value, nan_ok=True)
    return value


@settings(max_examples=60, deadline=None)
@given(
    labels=LABELS,
    seed=st.integers(0, 1000),
    depth=st.integers(1, 9),
    cutoff=st.one_of(st.none(), st.integers(1, 12)),
    gain=st.sampled_from(["exp2", "linear"]),
    empty=st.sampled_from([0, 1, "skip"]),
    relevant_from=st.sampled_from([1.0, 2.0]),
)
def test_a_ranking_or_prefix_has_the_value_of_the_reference(
    labels: list[float], seed: int, depth: int, cutoff: int | None, gain: str, empty: object, relevant_from: float
) -> None:
    conventions = Conventions(gain=gain, empty=empty, relevant_from=relevant_from)
    ranking = np.random.default_rng(seed).permutation(len(labels))[:depth]
    mask = all_items(1, len(labels))
    for metric in CODES:
        expected = METRICS[metric](
            torch.from_numpy(ranking)[None],
            torch.tensor([labels], dtype=torch.float64),
            mask,
            cutoff=cutoff,
            conventions=conventions,
        ).item()
        value = kernel_value(metric, ranking, np.array(labels), cutoff, conventions)
        assert value == pytest.approx(expected, abs=1e-12, nan_ok=True), metric


@pytest.mark.parametrize("num_items", [1, 2, 15, 33, 100, 256, 257, 5000])
@pytest.mark.parametrize("spread", [1.0, 1e-9, 1e300, 0.0])
def test_items_are_ranked_as_by_a_stable_sort(num_items: int, spread: float) -> None:
    generator = np.random.default_rng(num_items)
    scores = np.round(generator.normal(size=num_items), 2) * spread + (spread == 1e-9)
    scores[generator.random(num_items) < 0.1] = -0.0
    scores[:1] = -np.inf
    expected = np.argsort(-scores, kind="stable")
    for depth in {1, min(10, num_items), (num_items + 1) // 2, num_items}:
        ranking = np.full(depth, -1)
        kernels.rank_items(scores, depth, ranking)
        assert ranking.tolist() == expected[:depth].tolist()


def test_terms_become_arrays() -> None:
    table = term_table(parse_metric("0.7*ndcg@10 + 0.3*err"))
    assert table is not None
    assert table.kinds.tolist() == [kernels.ERR, kernels.NDCG]
    assert table.cutoffs.tolist() == [kernels.NO_CUTOFF, 10]
    assert table.weights.tolist() == [0.3, 0.7]


@pytest.mark.parametrize("text", ["ndcg*ap", "1 - err", "rbp", "ndcg + rbp(persistence=0.5)"])
def test_what_no_kernel_serves_has_no_table(text: str) -> None:
    assert term_table(parse_metric(text)) is None
