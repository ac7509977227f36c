import numpy as np
import pytest
import torch

from rankpolicy.fairness import group_disparity, position_bias
from rankpolicy.fairness.group_offsets import parity_offsets
from rankpolicy.gradients.exact import exposure_gradient
from rankpolicy.types import RankPolicyError

BIAS = position_bias(6, dtype=torch.float64)


def problem(scale, num_groups, seed=0, num_queries=30):
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(num_queries, 6, generator=generator, dtype=torch.float64)
    groups = torch.randint(num_groups, (num_queries, 6), generator=generator)
    mask = torch.ones(num_queries, 6, dtype=torch.bool)
    mask[: num_queries // 3, 4:] = False
    return scores, mask, groups


def exposure_of(scores, mask):
    return exposure_gradient(scores, mask, torch.zeros_like(scores), rank_weights=BIAS)[0]


@pytest.mark.parametrize("num_groups", [2, 3])
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 40.0])
def test_the_groups_of_every_query_have_equal_mean_exposure(scale, num_groups):
    scores, mask, groups = problem(scale, num_groups)
    exposure = exposure_of(scores + parity_offsets(scores, mask, groups).values, mask)
    for query in range(len(scores)):
        present = groups[query][mask[query]].unique()
        means = [exposure[query][mask[query] & (groups[query] == group)].mean().item() for group in present]
        assert means == pytest.approx([means[0]] * len(means), abs=1e-7)


def test_no_group_disparity_whatever_the_merits():
    scores, mask, groups = problem(3.0, 2)
    exposure = exposure_of(scores + parity_offsets(scores, mask, groups).values, mask)
    merit = torch.rand(scores.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 0.1
    assert group_disparity(exposure_of(scores, mask), merit, groups, mask).mean > 0.01
    assert group_disparity(exposure, merit, groups, mask).mean == pytest.approx(0.0, abs=1e-7)
    assert group_disparity(exposure, torch.ones_like(merit), groups, mask).mean == pytest.approx(0.0, abs=1e-7)


def test_order_within_a_group_stays_and_offsets_sum_to_zero():
    scores, mask, groups = problem(2.0, 3)
    offsets = parity_offsets(scores, mask, groups).values
    torch.testing.assert_close(offsets.sum(-1), torch.zeros(len(scores), dtype=torch.float64), atol=1e-9, rtol=0)
    for query in range(len(scores)):
        for group in range(3):
            of_group = offsets[query][mask[query] & (groups[query] == group)]
            assert (of_group == of_group[:1]).all()


def test_a_single_group_is_left_alone():
    scores, mask, _ = problem(2.0, 2)
    assert not parity_offsets(scores, mask, torch.zeros_like(mask, dtype=torch.long)).values.any()


def test_the_derivative_through_the_offsets_is_that_of_small_changes():
    scores, mask, groups = problem(1.0, 3, num_queries=4)
    values = torch.rand(scores.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64).where(mask, 0.0)

    def utility(at):
        return (values * exposure_of(at + parity_offsets(at, mask, groups).values, mask)).sum()

    offsets = parity_offsets(scores, mask, groups)
    shifted = scores + offsets.values
    _, slope = exposure_gradient(shifted, mask, values, rank_weights=BIAS)
    pull = offsets.members.of_items(offsets.multipliers(slope))
    gradient = slope - exposure_gradient(shifted, mask, pull, rank_weights=BIAS)[1]
    for query, item in [(0, 0), (1, 3), (2, 5), (3, 2)]:
        change = torch.zeros_like(scores)
        change[query, item] = 1e-4
        difference = (utility(scores + change) - utility(scores - change)) / 2e-4
        assert gradient[query, item].item() == pytest.approx(difference.item(), abs=1e-6)


def test_float32_is_refused():
    scores, mask, groups = problem(1.0, 2)
    with pytest.raises(RankPolicyError, match=r"float64; got torch\.float32"):
        parity_offsets(scores.float(), mask, groups)


def test_arrays_give_the_offsets_of_tensors():
    scores, mask, groups = problem(2.0, 3, num_queries=4)
    of_tensors = parity_offsets(scores, mask, groups)
    of_arrays = parity_offsets(scores.numpy(), mask.numpy(), groups.numpy())
    slope = torch.rand(scores.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    # Multipliers solve a nearly singular system, damped by 1e-10, which amplifies rounding.
    for of_array, of_tensor, tolerance in (
        (of_arrays.values, of_tensors.values, 1e-11),
        (of_arrays.multipliers(slope.numpy()), of_tensors.multipliers(slope), 1e-5),
    ):
        assert isinstance(of_array, np.ndarray)
        np.testing.assert_allclose(of_array, of_tensor.numpy(), rtol=0, atol=tolerance)
