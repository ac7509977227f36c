"""The exact race on a GPU against enumeration, the CPU kernel in float64 and the torch reference."""

import pytest
import torch

from rankpolicy.kernels.plackett_luce.race import race as race_on_cpu
from rankpolicy.kernels.triton import race as module
from rankpolicy.policies.race import COARSE, FINE, race_exposure
from tests.policies.test_race import enumerated

# The interpreter computes with NumPy, which warns of infinities that the kernels mean.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture
def few_blocks(monkeypatch, device):
    """More nodes at once: in the interpreter a block costs the same whatever its size."""
    if device.type == "cpu":
        monkeypatch.setattr(module, "_STATE", 1024)
        monkeypatch.setattr(module, "_NODES", 128)


@pytest.fixture(params=["states in registers", "blocks of states"])
def both_kernels(request, monkeypatch):
    """The kernel for few rank weights and that for many."""
    if request.param == "blocks of states":
        monkeypatch.setattr(module, "_MOST_IN_REGISTERS", 0)


def batch(num_queries, num_items, scale, cutoff, seed=0):
    generator = torch.Generator().manual_seed(seed + num_items)
    scores = scale * (2 * torch.rand(num_queries, num_items, generator=generator) - 1)
    coefficients = torch.randn(num_queries, num_items, generator=generator)
    return scores, torch.ones_like(scores, dtype=torch.bool), 1 / torch.arange(2.0, cutoff + 2).log2(), coefficients


def run(device, scores, mask, weights, coefficients, quadrature=COARSE):
    arrays = (array.to(device) for array in (scores, mask, weights, coefficients))
    found = module.race(*arrays, quadrature=quadrature)
    torch.testing.assert_close(found.total.cpu(), (coefficients * found.exposure.cpu()).sum(-1))
    return tuple(array.cpu() for array in found[:3])


def on_cpu(scores, mask, weights, coefficients, quadrature=COARSE):
    arrays = (scores.double(), mask, weights.double(), coefficients.double())
    return tuple(map(torch.from_numpy, race_on_cpu(*(array.numpy() for array in arrays), quadrature=quadrature)))


def check(found, expected, tolerance):
    for ours, reference in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), reference, rtol=0, atol=tolerance)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_exposure_and_gradient_equal_enumeration(device, both_kernels, few_blocks, scale):
    scores, mask, weights, coefficients = batch(2, 4, scale, 3)
    expected = enumerated(scores.double(), mask, torch.cat([weights, torch.zeros(1)]).double(), coefficients.double())
    check(run(device, scores, mask, weights, coefficients, FINE)[:2], map(torch.from_numpy, expected), 2e-6)


def test_exposure_and_gradient_equal_the_torch_reference(device, both_kernels, few_blocks):
    scores, mask, weights, coefficients = batch(2, 7, 3.0, 4)
    mask[0, 4:] = False
    leaf = scores.double().requires_grad_()
    exposure = race_exposure(leaf, mask, weights.double(), quadrature=FINE)
    (gradient,) = torch.autograd.grad((exposure * coefficients).sum(), leaf)
    check(run(device, scores, mask, weights, coefficients, FINE)[:2], (exposure.detach(), gradient), 2e-6)


@pytest.mark.parametrize(("num_items", "scale", "cutoff"), [(1, 1.0, 1), (9, 5.0, 9), (20, 2.0, 10)])
def test_it_equals_the_cpu_kernel_with_padding(device, both_kernels, few_blocks, num_items, scale, cutoff):
    scores, mask, weights, coefficients = batch(3, num_items, scale, cutoff)
    mask[0, num_items // 2 + 1 :] = False
    mask[1, : num_items // 2] = False
    mask[2] = False
    scores[~mask] = 1e30  # what padding holds does not matter
    found = run(device, scores, mask, weights, coefficients)
    # Nodes may begin elsewhere, so that coarse sums differ by their error where they are one sum of a single item.
    check(found, on_cpu(scores.masked_fill(~mask, 0.0), mask, weights, coefficients), 2e-5)
    assert all((array[~mask] == 0).all() for array in found)


def test_scores_far_apart_leave_a_sorted_list(device, both_kernels, few_blocks):
    scores = torch.tensor([[0.3, -1.0, 1.0, 0.0], [1.0, 0.9999, -1.0, 0.9998]]) * 1e4
    mask, weights = torch.ones(2, 4, dtype=torch.bool), torch.tensor([1.0, 0.5, 0.25, 0.125])
    found = run(device, scores, mask, weights, torch.tensor([1.0, -1.0, 0.5, 2.0]).expand(2, 4))
    sorted_weights = weights[torch.tensor([1, 3, 0, 2])]
    torch.testing.assert_close(found[0][0], sorted_weights, rtol=0, atol=2e-4)
    torch.testing.assert_close(found[1][0], torch.zeros(4), rtol=0, atol=2e-4)
    check(found, on_cpu(scores, mask, weights, torch.tensor([1.0, -1.0, 0.5, 2.0]).expand(2, 4)), 2e-4)


def test_small_blocks_and_several_rounds_per_program(device, both_kernels, monkeypatch):
    arrays = batch(1, 3, 30.0, 2)
    whole = run(device, *arrays)
    monkeypatch.setattr(module, "_MOST_CHUNKS", 2)
    check(run(device, *arrays), [array.double() for array in whole], 1e-5)


def test_states_read_from_scratch_memory_and_queries_in_parts(device, both_kernels, few_blocks, monkeypatch):
    arrays = batch(3, 5, 3.0, 4)
    whole = run(device, *arrays)
    monkeypatch.setattr(module, "_SEGMENTS", (4, 4))
    monkeypatch.setattr(module, "_MOST_GATHERED", 4)
    monkeypatch.setattr(module, "_SCRATCH_BYTES", 1)
    check(run(device, *arrays), [array.double() for array in whole], 1e-6)


def test_it_is_deterministic_and_cuts_off_zeros(device, both_kernels, few_blocks):
    scores, mask, weights, coefficients = batch(1, 20, 2.0, 3)
    first = run(device, scores, mask, weights, coefficients)
    padded = torch.cat([weights, torch.zeros(17)])
    for ours, again in zip(first, run(device, scores, mask, padded, coefficients), strict=True):
        assert torch.equal(ours, again)


@pytest.mark.parametrize("num_items", [120, 1000, 5000])
@pytest.mark.parametrize("scale", [2.0, 30.0, 1e4])
def test_long_lists(only_on_gpu, both_kernels, num_items, scale):
    scores, mask, weights, coefficients = batch(3, num_items, scale, 10)
    mask[0, num_items // 3 :] = False
    found = run(only_on_gpu, scores, mask, weights, coefficients)
    expected = on_cpu(scores, mask, weights, coefficients)
    check(found[:1], expected[:1], 1e-4)
    check(found[1:], expected[1:], 2e-3 * expected[1].abs().max().item() + 2e-4)


@pytest.mark.parametrize("cutoff", [100, 300, 1000])
def test_deep_cutoffs(only_on_gpu, cutoff):
    arrays = batch(2, 1000, 2.0, cutoff)
    expected = on_cpu(*arrays)
    check(run(only_on_gpu, *arrays), expected, 2e-3 * expected[1].abs().max().item() + 1e-4)


@pytest.mark.parametrize("cutoff", [3, 5])
def test_less_is_computed_where_less_is_asked_for(device, both_kernels, few_blocks, cutoff):
    arrays = batch(2, 5, 2.0, cutoff)
    whole = run(device, *arrays)
    given = [array.to(device) for array in arrays]
    exposure = module.race(*given, quadrature=COARSE, up_to="exposure")
    gradient = module.race(*given, quadrature=COARSE, up_to="gradient")
    torch.testing.assert_close(exposure.exposure.cpu(), whole[0], rtol=0, atol=1e-6)
    torch.testing.assert_close(gradient.gradient.cpu(), whole[1], rtol=0, atol=1e-6)
    assert not exposure.gradient.any()
    assert not gradient.curvature.any()
