import math

import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.fairness import individual_disparity, position_bias
from rankpolicy.fairness.disparity import compiled, pairwise


def random_queries(num_queries, num_items, seed=0, dtype=torch.float64, num_grades=4):
    generator = torch.Generator().manual_seed(seed)
    exposure = torch.rand(num_queries, num_items, generator=generator, dtype=dtype)
    merit = torch.randint(0, num_grades, exposure.shape, generator=generator).to(dtype)
    mask = torch.rand(exposure.shape, generator=generator) < 0.8
    return exposure, merit, mask


def by_definition(exposure, merit, mask):
    items = [i for i in range(len(merit)) if mask[i] and merit[i] > 0]
    pairs = [(i, j) for i in items for j in items if i != j and merit[i] >= merit[j]]
    return sum(max(0.0, exposure[i] / merit[i] - exposure[j] / merit[j]) for i, j in pairs) / len(pairs)


@pytest.mark.parametrize("function", [compiled, pairwise])
def test_golden_value(function):
    # e/M = 1/4, 1/6, 1/2: pairs (0, 1), (1, 0) of equal merit, (0, 2), (1, 2); only (0, 1) is unfair, by 1/12.
    exposure, merit = torch.tensor([[1.0, 2 / 3, 0.5]]), torch.tensor([[4.0, 4.0, 1.0]])
    values, gradient = function(exposure, merit, torch.ones(1, 3, dtype=torch.bool))
    assert values.tolist() == pytest.approx([1 / 48])
    assert gradient[0].tolist() == pytest.approx([1 / 16, -1 / 16, 0])


@pytest.mark.parametrize("num_items", [2, 3, 8])
def test_reference_is_the_definition(num_items):
    exposure, merit, mask = random_queries(20, num_items)
    disparity = individual_disparity(exposure, merit, mask)
    reference, _ = pairwise(exposure, merit, mask)
    for query in torch.nonzero(disparity.is_counted)[:, 0].tolist():
        expected = by_definition(exposure[query].tolist(), merit[query].tolist(), mask[query].tolist())
        assert reference[query].item() == pytest.approx(expected)
        assert disparity.values[query].item() == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("num_queries", "num_items", "num_grades"), [(1, 200, 5), (7, 1, 3), (30, 40, 2), (5, 60, 1000)]
)
def test_kernel_equals_reference(num_queries, num_items, num_grades, dtype):
    exposure, merit, mask = random_queries(num_queries, num_items, 1, dtype, num_grades)
    exposure = (exposure * 20).round() / 20  # many equal exposures: kinks
    for ours, reference in zip(compiled(exposure, merit, mask), pairwise(exposure, merit, mask), strict=True):
        torch.testing.assert_close(ours, reference)


def test_gradient_by_finite_differences():
    exposure, merit, mask = random_queries(6, 7)
    gradient = individual_disparity(exposure, merit, mask).gradient
    for item in range(exposure.shape[1]):
        step = torch.zeros_like(exposure)
        step[:, item] = 1e-6
        up, down = (individual_disparity(exposure + s, merit, mask).values for s in (step, -step))
        torch.testing.assert_close((up - down) / 2e-6, gradient[:, item], atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("merits", [[1.0, 1.0, 1.0], [3.0, 1.0, 2.0]])
def test_a_uniform_policy_is_fair(merits):
    exposure = position_bias(3, dtype=torch.float32).mean().expand(2, 3)
    disparity = individual_disparity(exposure, torch.tensor([merits, merits]), torch.ones(2, 3, dtype=torch.bool))
    assert disparity.mean == 0
    assert not disparity.gradient.any()


def test_samples_of_a_uniform_policy_look_unfair():
    num_items = 24
    generator = torch.Generator().manual_seed(0)
    rankings = torch.rand(10, 400, num_items, generator=generator).argsort(-1)
    bias = position_bias(num_items, dtype=torch.float32)
    plugged_in = bias[rankings.argsort(-1)].mean(0)
    labels = torch.randint(0, 3, plugged_in.shape, generator=generator).float()
    mask = torch.ones_like(labels, dtype=torch.bool)
    assert individual_disparity(plugged_in, labels, mask).mean == pytest.approx(0.015, rel=0.1)
    assert individual_disparity(bias.mean().expand(labels.shape), labels, mask).mean == 0


def test_queries_without_pairs_are_left_out_and_counted():
    exposure, mask = torch.ones(3, 3), torch.ones(3, 3, dtype=torch.bool)
    merit = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [2.0, 1.0, 0.0]])
    disparity = individual_disparity(exposure, merit, mask)
    assert disparity.is_counted.tolist() == [False, False, True]
    assert disparity.left_out == {"fewer than two items with positive merit": 2}
    assert disparity.num_counted == 1
    assert math.isnan(individual_disparity(exposure[:2], merit[:2], mask[:2]).mean)


def test_padding_and_relabelling_change_nothing():
    exposure, merit, _ = random_queries(4, 6)
    mask = torch.ones_like(merit, dtype=torch.bool)
    alone = individual_disparity(exposure, merit, mask)
    order = torch.tensor([3, 5, 0, 1, 4, 2])
    moved = individual_disparity(exposure[:, order], merit[:, order], mask)
    torch.testing.assert_close(moved.values, alone.values)
    torch.testing.assert_close(moved.gradient, alone.gradient[:, order])

    def padded(values, filling):
        return torch.cat([torch.full_like(values[:, :2], filling), values], 1)

    wide = individual_disparity(padded(exposure, 9.0), padded(merit, math.nan), padded(mask, False))
    torch.testing.assert_close(wide.values, alone.values)
    torch.testing.assert_close(wide.gradient, padded(alone.gradient, 0.0))


def test_wrong_input_is_named():
    with pytest.raises(RankPolicyError, match=r"For one query add an axis: exposure\[None\]"):
        individual_disparity(torch.ones(3), torch.ones(3), torch.ones(3, dtype=torch.bool))
    with pytest.raises(RankPolicyError, match="merit must be finite and 0 or more"):
        individual_disparity(torch.ones(1, 1), -torch.ones(1, 1), torch.ones(1, 1, dtype=torch.bool))
    with pytest.raises(RankPolicyError, match="mask bool"):
        individual_disparity(torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1))
