"""Individual disparity on a GPU against all pairs in torch."""

import sys

import pytest
import torch

from rankpolicy.fairness.individual_disparity import individual_disparity, pairwise
from rankpolicy.kernels.triton.disparity import individual_disparities


def batch(num_queries, num_items):
    generator = torch.Generator().manual_seed(num_items)
    exposure = torch.rand(num_queries, num_items, generator=generator)
    merit = torch.randint(0, 4, exposure.shape, generator=generator).float()
    mask = torch.rand(exposure.shape, generator=generator) < 0.9
    mask[0] = False
    return exposure, merit, mask


def check(device, num_queries, num_items):
    arrays = batch(num_queries, num_items)
    values, gradient = individual_disparities(*(array.to(device) for array in arrays))
    expected, expected_gradient = pairwise(arrays[0].double(), arrays[1].double(), arrays[2])
    torch.testing.assert_close(values.cpu().double(), expected, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(gradient.cpu().double(), expected_gradient, rtol=1e-5, atol=1e-7)
    again = individual_disparities(*(array.to(device) for array in arrays))
    assert torch.equal(values, again[0])
    assert torch.equal(gradient, again[1])


@pytest.mark.parametrize("num_items", [1, 2, 7, 64, 150])
def test_it_equals_all_pairs(device, num_items):
    check(device, 3, num_items)


@pytest.mark.parametrize("num_items", [1000, 5000])
def test_long_lists(only_on_gpu, num_items):
    check(only_on_gpu, 2, num_items)


def test_equal_treatment_counts_for_nothing(device, monkeypatch):
    """By hand: e / M = 0.5, 0.3, 0.5 and only the pair (0, 1) adds, 0.2 over four pairs."""
    monkeypatch.setattr(sys.modules["rankpolicy.fairness.individual_disparity"], "on_gpu", lambda array: True)
    exposure, merit = torch.tensor([[1.0, 0.6, 0.5]]), torch.tensor([[2.0, 2.0, 1.0]])
    arrays = (exposure.to(device), merit.to(device), torch.ones(1, 3, dtype=torch.bool, device=device))
    found = individual_disparity(*arrays)
    torch.testing.assert_close(found.values.cpu(), torch.tensor([0.05]))
    torch.testing.assert_close(found.gradient.cpu(), torch.tensor([[0.125, -0.125, 0.0]]))
