import numpy as np
import pytest
import torch

from rankpolicy.kernels.plackett_luce.race import race
from rankpolicy.policies import PlackettLuce
from rankpolicy.policies.race import COARSE, FINE, race_exposure
from tests.enumeration import all_rankings


def dcg_weights(num_items, cutoff):
    weights = 1 / torch.arange(2, num_items + 2, dtype=torch.float64).log2()
    weights[cutoff:] = 0
    return weights


def random_scores(num_items, scale, num_queries=4):
    generator = torch.Generator().manual_seed(num_items)
    scores = scale * (2 * torch.rand(num_queries, num_items, generator=generator, dtype=torch.float64) - 1)
    return scores, torch.ones_like(scores, dtype=torch.bool), torch.randn(scores.shape, generator=generator).double()


def enumerated(scores, mask, weights, coefficients):
    """Exposure and gradient of sum(coefficients * exposure) from the probabilities of all rankings."""
    leaf = scores.clone().requires_grad_()
    rankings = all_rankings(scores.shape[-1]).expand(-1, len(scores), -1)
    probabilities = PlackettLuce(leaf, mask).log_prob(rankings).exp()
    exposure = (probabilities[..., None] * weights[rankings.argsort(-1)]).sum(0)
    (gradient,) = torch.autograd.grad((exposure * coefficients).sum(), leaf)
    return exposure.detach().numpy(), gradient.numpy()


def run_kernel(scores, mask, weights, coefficients, quadrature=FINE):
    return race(scores.numpy(), mask.numpy(), weights.numpy(), coefficients.numpy(), quadrature=quadrature)


@pytest.mark.parametrize("scale", [1.0, 5.0, 30.0])
@pytest.mark.parametrize("num_items", [1, 2, 3, 5, 6])
def test_exposure_and_gradient_equal_enumeration(num_items, scale):
    scores, mask, coefficients = random_scores(num_items, scale)
    for cutoff in range(1, num_items + 1):
        weights = dcg_weights(num_items, cutoff)
        expected_exposure, expected_gradient = enumerated(scores, mask, weights, coefficients)
        exposure, gradient, _ = run_kernel(scores, mask, weights, coefficients)
        np.testing.assert_allclose(exposure, expected_exposure, atol=1e-8)
        np.testing.assert_allclose(gradient, expected_gradient, atol=1e-8)
        np.testing.assert_allclose(race_exposure(scores, mask, weights).numpy(), expected_exposure, atol=1e-8)


def test_seven_items_and_weights_that_do_not_fall():
    scores, mask, coefficients = random_scores(7, 3.0, num_queries=1)
    weights = torch.tensor([0.2, 1.0, -0.5, 0.0, 0.3, 0.0, 2.0], dtype=torch.float64)
    expected_exposure, expected_gradient = enumerated(scores, mask, weights, coefficients)
    exposure, gradient, _ = run_kernel(scores, mask, weights, coefficients)
    np.testing.assert_allclose(exposure, expected_exposure, atol=1e-8)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-8)


@pytest.mark.parametrize("quadrature", [FINE, COARSE])
def test_kernel_equals_reference_with_padding(quadrature):
    scores, mask, coefficients = random_scores(12, 4.0)
    mask[0, [0, 5]] = False
    mask[1, 3:] = False
    weights = dcg_weights(12, 6)
    leaf = scores.clone().requires_grad_()
    expected = race_exposure(leaf, mask, weights, quadrature=quadrature)
    (expected_gradient,) = torch.autograd.grad((expected * coefficients).sum(), leaf)
    exposure, gradient, _ = run_kernel(scores, mask, weights, coefficients, quadrature)
    # The reference shares its nodes among queries, so that coarse sums differ by their error.
    tolerance = 1e-9 if quadrature is FINE else 1e-3
    np.testing.assert_allclose(exposure, expected.detach().numpy(), atol=tolerance)
    np.testing.assert_allclose(gradient, expected_gradient.numpy(), atol=tolerance)
    assert (exposure[~mask.numpy()] == 0).all()
    assert (gradient[~mask.numpy()] == 0).all()


@pytest.mark.parametrize(("num_items", "cutoff"), [(24, 10), (120, 10), (200, 10), (80, 80)])
def test_exposures_sum_to_the_rank_weights(num_items, cutoff):
    scores, mask, coefficients = random_scores(num_items, 3.0)
    weights = dcg_weights(num_items, cutoff)
    exposure, gradient, _ = run_kernel(scores, mask, weights, coefficients)
    np.testing.assert_allclose(exposure.sum(-1), weights.sum().item(), rtol=1e-9)
    # Adding a constant to all scores changes nothing, so the gradient sums to 0.
    np.testing.assert_allclose(gradient.sum(-1), 0, atol=1e-9)


def test_the_jacobian_is_a_symmetric_graph_laplacian():
    scores, mask, _ = random_scores(6, 2.0, num_queries=1)
    weights = dcg_weights(6, 3)
    rows = [run_kernel(scores, mask, weights, unit[None])[1:] for unit in torch.eye(6, dtype=torch.float64)]
    jacobian = np.concatenate([row[0] for row in rows])
    np.testing.assert_allclose(jacobian, jacobian.T, atol=1e-10)
    np.testing.assert_allclose(jacobian.sum(-1), 0, atol=1e-10)
    assert (jacobian[~np.eye(6, dtype=bool)] <= 1e-12).all()
    np.testing.assert_allclose(rows[0][1][0], np.diag(jacobian), atol=1e-10)


def test_float32_is_good_to_a_ten_thousandth_at_200_items():
    scores, mask, coefficients = random_scores(200, 2.0)
    weights = dcg_weights(200, 10)
    exposure, gradient, _ = run_kernel(scores, mask, weights, coefficients)
    single_exposure, single_gradient, _ = run_kernel(scores.float(), mask, weights, coefficients.float())
    assert single_exposure.dtype == np.float32
    np.testing.assert_allclose(single_exposure, exposure, rtol=1e-4)
    assert np.abs(single_gradient - gradient).max() <= 1e-4 * np.abs(gradient).max()


def test_coarse_nodes_are_good_enough_to_train_on():
    for num_items, cutoff in ((24, 10), (120, 10), (60, 60)):
        scores, mask, coefficients = random_scores(num_items, 2.0)
        weights = dcg_weights(num_items, cutoff)
        gradient = run_kernel(scores, mask, weights, coefficients)[1]
        coarse = run_kernel(scores, mask, weights, coefficients, COARSE)[1]
        assert np.linalg.norm(coarse - gradient) <= 5e-3 * np.linalg.norm(gradient)


@pytest.mark.parametrize("spread", [0.0, 0.01])
def test_coarse_nodes_reach_the_first_arrival_among_many_equal_items(spread):
    scores, mask, coefficients = random_scores(500, spread)
    weights = dcg_weights(500, 10)
    exact = run_kernel(scores, mask, weights, coefficients)[1]
    gradient = run_kernel(scores, mask, weights, coefficients, COARSE)[1]
    assert np.abs(gradient - exact).max() <= 5e-4 * np.abs(exact).max()
    # Equal items share the rank weights.
    exposure = race_exposure(torch.zeros_like(scores), mask, weights, quadrature=COARSE)
    np.testing.assert_allclose(exposure.numpy(), weights.sum().item() / 500, rtol=2e-4)


@pytest.mark.parametrize("scale", [1e3, 1e4])
def test_scores_far_apart_leave_a_sorted_list(scale):
    scores = torch.tensor([[0.3, -1.0, 1.0, 0.0]], dtype=torch.float64) * scale
    mask = torch.ones(1, 4, dtype=torch.bool)
    weights = dcg_weights(4, 4)
    expected = weights[torch.tensor([1, 3, 0, 2])].numpy()
    exposure, gradient, _ = run_kernel(scores, mask, weights, torch.ones(1, 4, dtype=torch.float64))
    np.testing.assert_allclose(exposure[0], expected, atol=1e-8)
    np.testing.assert_allclose(race_exposure(scores, mask, weights).numpy()[0], expected, atol=1e-8)
    np.testing.assert_allclose(gradient, 0, atol=1e-8)


def test_exposure_of_the_policy():
    scores = torch.tensor([[3.0, 2.0, 1.0]], dtype=torch.float64).log()
    policy = PlackettLuce(scores, torch.ones(1, 3, dtype=torch.bool))
    first = policy.exposure(torch.tensor([1.0]).double())
    torch.testing.assert_close(first, torch.tensor([[3 / 6, 2 / 6, 1 / 6]]).double())
    torch.testing.assert_close(policy.exposure(cutoff=1), first)
