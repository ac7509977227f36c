"""One long list among many short ones: cost follows the number of items."""

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.data.padding import Padding
from rankpolicy.evaluation.measure import values_by_reference
from rankpolicy.metrics import parse_metric
from rankpolicy.objectives import FairPolicyGradient
from rankpolicy.rankers.trees.policy_tree_objective import PolicyTreeObjective

SIZES = np.append(np.full(300, 10), 2000)


@pytest.fixture(scope="module")
def dataset():
    rng = np.random.default_rng(0)
    labels = (rng.random(SIZES.sum()) < 0.3).astype(float)
    features = rng.standard_normal((SIZES.sum(), 2))
    return rp.from_arrays(features, labels, group=SIZES, protected=rng.integers(0, 2, SIZES.sum()))


@pytest.fixture
def padded_cells(monkeypatch):
    """How many cells were padded, counted as they are made."""
    cells = []
    original = Padding.of_sizes.__func__

    def counted(cls, sizes):
        padding = original(cls, sizes)
        cells.append(padding.mask.size)
        return padding

    monkeypatch.setattr(Padding, "of_sizes", classmethod(counted))
    return cells


FAIR = FairPolicyGradient(reward="ndcg@10", fairness="group", num_groups=2, strength=0.5)


@pytest.mark.parametrize("fair", [None, FAIR], ids=["reward", "fair"])
def test_the_tree_objective_pads_no_more_than_twice_the_items(dataset, padded_cells, fair):
    PolicyTreeObjective.of(dataset, reward="ndcg@10", hessian="magnitude", normalize=False, fair=fair)
    assert sum(padded_cells) <= 2 * SIZES.sum()


@pytest.mark.parametrize("fair", [None, FAIR], ids=["reward", "fair"])
@pytest.mark.parametrize("normalize", [False, True])
def test_its_gradient_is_that_of_all_queries_padded_together(dataset, fair, normalize, monkeypatch):
    scores = np.random.default_rng(1).standard_normal(SIZES.sum())
    results = []
    for together in (False, True):
        if together:
            monkeypatch.setattr(
                "rankpolicy.rankers.trees.policy_tree_objective.queries_by_length",
                lambda sizes: [np.arange(len(sizes))],
            )
        objective = PolicyTreeObjective.of(
            dataset, reward="ndcg@10", hessian="magnitude", normalize=normalize, fair=fair
        )
        results.append((*objective(scores), objective.history))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-4, atol=1e-7)
    for name, values in results[0][2].items():
        assert values == pytest.approx(results[1][2][name], rel=1e-5)


def test_metrics_without_a_kernel_pad_no_more_than_twice_the_items(dataset, padded_cells):
    scores = np.random.default_rng(1).standard_normal(SIZES.sum())
    values = values_by_reference(scores, dataset, parse_metric("rbp"))
    assert sum(padded_cells) <= 2 * SIZES.sum()
    alone = [values_by_reference(scores[-2000:], dataset[300], parse_metric("rbp"))[0]]
    np.testing.assert_allclose(values[300:], alone)
