import numpy as np
import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.fairness import birkhoff_decomposition, mixture_of, position_bias


def doubly_stochastic(size, seed=0):
    matrix = np.random.default_rng(seed).random((size, size))
    for _ in range(500):
        matrix /= matrix.sum(0)
        matrix /= matrix.sum(1, keepdims=True)
    return matrix


def composed(rankings, weights):
    matrix = np.zeros((rankings.shape[1], rankings.shape[1]))
    for ranking, weight in zip(rankings, weights, strict=True):
        matrix[ranking, np.arange(len(ranking))] += weight
    return matrix


@pytest.mark.parametrize("size", [1, 2, 3, 6, 20])
def test_rankings_add_up_to_the_matrix(size):
    matrix = doubly_stochastic(size)
    rankings, weights = birkhoff_decomposition(matrix)
    assert len(weights) <= (size - 1) ** 2 + 1
    assert (np.sort(rankings, 1) == np.arange(size)).all()
    assert weights.sum() == pytest.approx(1)
    assert np.abs(composed(rankings, weights) - matrix).max() <= 1e-9


def test_mixtures_of_few_rankings_are_found_again():
    rankings, weights = np.array([[2, 0, 1, 3], [0, 1, 2, 3], [3, 2, 1, 0]]), np.array([0.5, 0.3, 0.2])
    found = birkhoff_decomposition(composed(rankings, weights))
    assert found.rankings.tolist() == rankings.tolist()
    np.testing.assert_allclose(found.weights, weights, atol=1e-12)


def test_errors_of_a_solver_are_forgiven():
    matrix = doubly_stochastic(5) + np.random.default_rng(1).uniform(-1e-8, 1e-8, (5, 5))
    assert np.abs(composed(*birkhoff_decomposition(matrix)) - matrix).max() < 1e-7


def test_exposure_of_the_mixture_is_that_of_the_matrices():
    matrices = [doubly_stochastic(4), doubly_stochastic(2), np.eye(3)]
    policy = mixture_of(matrices, dtype=torch.float64)
    bias = position_bias(4, dtype=torch.float64)
    exposure = policy.exposure(bias)
    for query, matrix in enumerate(matrices):
        np.testing.assert_allclose(exposure[query, : len(matrix)], matrix @ bias.numpy()[: len(matrix)], atol=1e-9)
    assert policy.mask.sum(-1).tolist() == [4, 2, 3]


def test_other_matrices_are_refused():
    with pytest.raises(RankPolicyError, match=r"row sums 0\.5 to 1"):
        birkhoff_decomposition([[0.5, 0.0], [0.5, 0.5]])
    with pytest.raises(RankPolicyError, match=r"lowest entry -0\.5"):
        birkhoff_decomposition([[1.5, -0.5], [-0.5, 1.5]])
    with pytest.raises(RankPolicyError, match="must be square"):
        birkhoff_decomposition([[1.0, 0.0]])
    with pytest.raises(RankPolicyError, match="at least one query"):
        mixture_of([])
