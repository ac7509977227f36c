import subprocess
import sys

import numpy as np
import pytest
import torch

from rankpolicy.data.arrays import from_arrays
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.evaluation import evaluate, evaluate_scores
from rankpolicy.evaluation.measure import values_by_reference
from rankpolicy.metrics import METRICS, parse_metric, parse_metrics, term_table
from rankpolicy.types import Conventions, RankPolicyError


def random_dataset(num_queries: int = 60, longest: int = 70, seed: int = 0) -> tuple[np.ndarray, RankingDataset]:
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, longest, num_queries)
    labels = generator.choice(5, p=[0.7, 0.1, 0.1, 0.05, 0.05], size=sizes.sum())
    labels[: sizes[0]] = 0
    scores = np.round(generator.normal(size=sizes.sum()), 1)  # rounded: ties
    return scores, from_arrays(np.zeros((sizes.sum(), 1)), labels, group=sizes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gain", ["exp2", "linear"])
@pytest.mark.parametrize("empty", [0, 1, "skip"])
def test_the_compiled_path_equals_the_reference(empty: object, gain: str, dtype: type) -> None:
    scores, dataset = random_dataset(num_queries=12, longest=30)
    conventions = Conventions(empty=empty, gain=gain)
    texts = [f"{name}{at}" for name in METRICS for at in ("", "@1", "@5", "@100")]
    measures = [parse_metric(text, conventions) for text in [*texts, "mean(ap, rr)", "ndcg@10*ap", "1 - 0.5*err@3"]]
    values = evaluate_scores(scores.astype(dtype), dataset, measures)
    expected = np.column_stack([values_by_reference(scores.astype(dtype), dataset, measure) for measure in measures])
    np.testing.assert_allclose(values, expected, atol=1e-9)


def test_blocks_of_queries_change_nothing() -> None:
    scores, dataset = random_dataset()
    metric = parse_metric("ndcg@10")
    in_blocks = values_by_reference(scores, dataset, metric, cells_per_block=500)
    np.testing.assert_allclose(in_blocks, values_by_reference(scores, dataset, metric))


def test_without_numba_torch_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, dataset = random_dataset()
    compiled = evaluate(scores, dataset, "ndcg@10, err")
    monkeypatch.setattr(sys.modules["rankpolicy.metrics.expression"], "HAS_NUMBA", False)
    monkeypatch.setitem(
        sys.modules, "rankpolicy.kernels.metrics.values", None
    )  # and an attempt to import it would be seen
    np.testing.assert_allclose(evaluate(scores, dataset, "ndcg@10, err").values, compiled.values, atol=1e-12)
    assert term_table(parse_metric("ndcg")) is None


def test_golden_values_and_ties_in_expectation() -> None:
    dataset = from_arrays(np.zeros((5, 1)), [0, 1, 3, 1, 0], group=[3, 2])
    table = evaluate([2.0, 1.0, 3.0, 0.5, 0.5], dataset, "ap, rr, p@1")
    np.testing.assert_allclose(table.values, [[(1 + 2 / 3) / 2, 1, 1], [0.75, 0.75, 0.5]])
    assert table.query_ids.tolist() == ["0", "1"]


def test_a_list_of_5000_items() -> None:
    generator = np.random.default_rng(1)
    scores, labels = generator.normal(size=5000), generator.integers(0, 5, 5000)
    dataset = from_arrays(np.zeros((5000, 1)), labels, group=[5000])
    for metric in parse_metrics("ndcg, ap, err@10"):
        ours = evaluate_scores(scores, dataset, [metric])[:, 0]
        np.testing.assert_allclose(ours, values_by_reference(scores, dataset, metric))


def test_a_ranker_a_tensor_and_an_own_function() -> None:
    scores, dataset = random_dataset()
    scores = scores + np.linspace(0, 1e-6, len(scores))  # no ties, over which a function is averaged by random orders

    class Fixed:
        def predict(self, data: RankingDataset) -> np.ndarray:
            assert data is dataset
            return scores

    def of_first(rankings: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (labels.gather(-1, rankings[..., :1])[..., 0] >= 1).double()

    by_ranker = evaluate(Fixed(), dataset, [of_first, "p@1"])
    by_tensor = evaluate(torch.from_numpy(scores), dataset, ["p@1", METRICS["ap"]])
    np.testing.assert_allclose(by_ranker["of_first"], by_ranker["p@1"])
    np.testing.assert_allclose(by_ranker["p@1"], by_tensor["p@1"])
    assert by_tensor.names == ("p@1", "ap")


@pytest.mark.parametrize(
    ("scores", "metrics", "message"),
    [
        ([1.0, 2.0], "ap", r"one value per item of the dataset, shape \(3,\); got \(2,\)"),
        ([1.0, np.nan, 2.0], "ap", r"must not be NaN; 1 of 3 are, first at row 1 \(query 0\)"),
        (["a", "b", "c"], "ap", "scores must be numbers"),
        ([1.0, 2.0, 3.0], [], "at least one metric"),
        ([1.0, 2.0, 3.0], "err", "Raise it: Conventions"),
        ([1.0, 2.0, 3.0], [parse_metric("ap", Conventions(empty=1))], "must follow its conventions"),
    ],
)
def test_bad_input_is_explained(scores: object, metrics: object, message: str) -> None:
    dataset = from_arrays(np.zeros((3, 1)), [0, 9, 1], group=[2, 1])
    with pytest.raises(RankPolicyError, match=message):
        evaluate(scores, dataset, metrics)


def test_importing_evaluation_stays_light() -> None:
    heavy = "numba", "scipy", "polars", "pandas", "matplotlib", "lightgbm"
    program = f"import sys, rankpolicy.evaluation; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_arrays_in_place_of_a_dataset_are_named():
    with pytest.raises(RankPolicyError, match=r"dataset must be a RankingDataset; got tuple. Arrays: from_arrays"):
        evaluate([1.0], (np.zeros((1, 1)), [1]))
