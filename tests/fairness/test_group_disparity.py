import math
from itertools import combinations

import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.fairness import encode_groups, group_disparity


def all_real(values):
    return torch.ones(values.shape, dtype=torch.bool)


def random_queries(num_queries, num_items, num_groups, seed=0):
    generator = torch.Generator().manual_seed(seed)
    exposure = torch.rand(num_queries, num_items, generator=generator, dtype=torch.float64)
    merit = torch.randint(0, 3, exposure.shape, generator=generator).double()
    groups = torch.randint(0, num_groups, exposure.shape, generator=generator)
    return exposure, merit, groups, torch.rand(exposure.shape, generator=generator) < 0.9


def by_definition(exposure, merit, groups, mask, num_groups, form):
    """Disparity of one query, or None where it is left out."""
    members = [[i for i in range(len(groups)) if mask[i] and groups[i] == g] for g in range(num_groups)]
    if any(not own for own in members):
        return None
    E, M = ([sum(values[i] for i in own) / len(own) for own in members] for values in (exposure, merit))
    if form == "means" and min(M) == 0:
        return None

    def difference(a, b):
        return E[a] / M[a] - E[b] / M[b] if form == "means" else M[b] * E[a] - M[a] * E[b]

    pairs = [(a, b) if M[a] >= M[b] else (b, a) for a, b in combinations(range(num_groups), 2)]
    terms = [abs(difference(a, b)) if M[a] == M[b] else max(0.0, difference(a, b)) for a, b in pairs]
    return sum(terms) / len(terms)


def test_golden_values():
    exposure, merit = torch.tensor([[1.0, 0.6, 0.3]]), torch.tensor([[3.0, 1.0, 1.0]])
    groups = torch.tensor([[0, 0, 1]])
    assert group_disparity(exposure, merit, groups, all_real(merit)).mean == pytest.approx(0.8 / 2 - 0.3 / 1)
    crossed = group_disparity(exposure, merit, groups, all_real(merit), form="cross_multiplied")
    assert crossed.mean == pytest.approx(1 * 0.8 - 2 * 0.3)
    assert crossed.gradient[0].tolist() == pytest.approx([0.5, 0.5, -2])
    less_than_due = torch.tensor([[0.1, 0.1, 1.0]])
    assert group_disparity(less_than_due, merit, groups, all_real(merit)).mean == 0


def test_equal_merit_counts_both_ways():
    exposure, merit, groups = torch.tensor([[1.0, 0.6]]), torch.ones(1, 2), torch.tensor([[0, 1]])
    for codes in (groups, 1 - groups):
        disparity = group_disparity(exposure, merit, codes, all_real(merit))
        assert disparity.mean == pytest.approx(0.4)
        assert disparity.gradient.tolist() == [[1, -1]]


@pytest.mark.parametrize("form", ["means", "cross_multiplied"])
@pytest.mark.parametrize("num_groups", [2, 3, 4])
def test_definition(num_groups, form):
    arrays = random_queries(60, 9, num_groups)
    disparity = group_disparity(*arrays, form=form, num_groups=num_groups)
    expected = [by_definition(*(x[q].tolist() for x in arrays), num_groups, form) for q in range(60)]
    assert disparity.is_counted.tolist() == [value is not None for value in expected]
    torch.testing.assert_close(disparity.values, torch.tensor([value or 0.0 for value in expected]).double())
    assert sum(disparity.left_out.values()) + disparity.num_counted == 60


@pytest.mark.parametrize("amortized", [False, True])
@pytest.mark.parametrize("form", ["means", "cross_multiplied"])
def test_gradient_by_finite_differences(form, amortized):
    exposure, merit, groups, mask = random_queries(8, 6, 3, seed=3)

    def mean(moved):
        return group_disparity(moved, merit, groups, mask, form=form, amortized=amortized).mean

    disparity = group_disparity(exposure, merit, groups, mask, form=form, amortized=amortized)
    assert disparity.gradient.any()
    for query in range(8):
        for item in range(6):
            step = torch.zeros_like(exposure)
            step[query, item] = 1e-6
            slope = (mean(exposure + step) - mean(exposure - step)) / 2e-6
            assert slope == pytest.approx(disparity.gradient[query, item].item() / disparity.num_counted, abs=1e-7)


def test_amortized_lets_queries_make_up_for_each_other():
    exposure, merit = torch.tensor([[1.0, 0.5], [0.5, 1.0]]), torch.ones(2, 2)
    groups = torch.tensor([[0, 1], [0, 1]])
    assert group_disparity(exposure, merit, groups, all_real(merit)).mean == pytest.approx(0.5)
    amortized = group_disparity(exposure, merit, groups, all_real(merit), amortized=True)
    assert amortized.mean == 0
    assert amortized.values.tolist() == [0.5, -0.5]
    assert not amortized.gradient.any()


def test_amortized_does_not_hide_a_group_that_gains_on_every_query():
    # Group 0 has 0.2 more for its merit on both queries; it has the higher merit on the first only, and on average.
    merit, groups = torch.tensor([[4.0, 1.0], [1.0, 2.0]]), torch.tensor([[0, 1], [0, 1]])
    exposure = torch.tensor([[1.2, 0.1], [0.7, 1.0]])
    assert group_disparity(exposure, merit, groups, all_real(merit), amortized=True).mean == pytest.approx(0.2)


def test_absent_groups_and_zero_merit_are_left_out_and_counted():
    exposure = torch.rand(4, 3)
    merit = torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 2.0], [1.0, 1.0, 9.0]])
    groups = torch.tensor([[0, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]])
    mask = torch.tensor([[True] * 3, [True] * 3, [True] * 3, [True, True, False]])
    disparity = group_disparity(exposure, merit, groups, mask)
    assert disparity.left_out == {"a group is absent": 2, "a group has zero merit": 1}
    assert disparity.is_counted.tolist() == [False, False, True, False]
    crossed = group_disparity(exposure, merit, groups, mask, form="cross_multiplied")
    assert crossed.left_out == {"a group is absent": 2}
    nobody = group_disparity(exposure[:1], merit[:1], groups[:1], mask[:1], amortized=True)
    assert math.isnan(nobody.mean)
    assert not nobody.gradient.any()


def test_a_batch_that_lacks_a_group_knows_of_it():
    exposure, merit, groups = torch.rand(1, 4), torch.ones(1, 4), torch.tensor([[0, 0, 1, 1]])
    assert group_disparity(exposure, merit, groups, all_real(merit)).num_counted == 1
    assert group_disparity(exposure, merit, groups, all_real(merit), num_groups=3).num_counted == 0


def test_padding_and_relabelling_change_nothing():
    exposure, merit, groups, mask = random_queries(10, 6, 2)
    alone = group_disparity(exposure, merit, groups, mask)
    order = torch.tensor([3, 5, 0, 1, 4, 2])
    moved = group_disparity(*(x[:, order] for x in (exposure, merit, groups, mask)))
    torch.testing.assert_close(moved.values, alone.values)
    torch.testing.assert_close(moved.gradient, alone.gradient[:, order])
    renamed = group_disparity(exposure, merit, 1 - groups, mask)
    torch.testing.assert_close(renamed.values, alone.values)

    def padded(values, filling):
        return torch.cat([values, torch.full_like(values[:, :2], filling)], 1)

    wide = group_disparity(padded(exposure, 9.0), padded(merit, 9.0), padded(groups, -1), padded(mask, False))
    torch.testing.assert_close(wide.values, alone.values)
    torch.testing.assert_close(wide.gradient, padded(alone.gradient, 0.0))


def test_any_labels_become_codes():
    mask = torch.tensor([[True, True, True], [True, True, False]])
    codes, names = encode_groups([["m", "f", "m"], ["f", "f", "?"]], mask)
    assert (codes.tolist(), names) == ([[1, 0, 1], [0, 0, 0]], ("f", "m"))
    assert encode_groups(torch.tensor([7, 3])).codes.tolist() == [1, 0]
    assert encode_groups([True, False]).names == (False, True)


def test_wrong_groups_are_named():
    exposure, merit, mask = torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2, dtype=torch.bool)
    with pytest.raises(RankPolicyError, match="encode_groups"):
        group_disparity(exposure, merit, torch.ones(1, 2), mask)
    with pytest.raises(RankPolicyError, match="run from 0 to 1; got -1 to 0"):
        group_disparity(exposure, merit, torch.tensor([[0, -1]]), mask)
    with pytest.raises(RankPolicyError, match=r"groups\[None\]"):
        group_disparity(exposure, merit, torch.tensor([0, 1]), mask)
    with pytest.raises(RankPolicyError, match="form must be"):
        group_disparity(exposure, merit, torch.tensor([[0, 1]]), mask, form="sums")
    with pytest.raises(RankPolicyError, match="a missing one"):
        encode_groups(["a", None])


def test_amortized_values_of_three_groups_average_over_pairs():
    """Group 0 has the highest merit and group 1 more than 2: differences 1 / 4 - 0.6 / 2, 1 / 4 - 0.5 and 0.6 / 2 - 0.5."""
    exposure, merit = torch.tensor([[1.0, 0.6, 0.5]]).double(), torch.tensor([[4.0, 2.0, 1.0]]).double()
    disparity = group_disparity(exposure, merit, torch.tensor([[0, 1, 2]]), all_real(merit), amortized=True)
    assert disparity.values.tolist() == pytest.approx([(-0.05 - 0.25 - 0.2) / 3])
