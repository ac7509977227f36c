"""Gradients of LambdaRank, computed by hand."""

import math

import numpy as np
import pytest

pytest.importorskip("numba")

from rankpolicy.kernels.lambdarank import lambda_gradients


def test_gradients_of_two_items_by_hand():
    gradient, hessian = lambda_gradients(np.zeros(2), np.array([0, 1]), np.array([0, 2]), np.ones(1), truncation=30)
    change = 1 - 1 / math.log2(3)  # of NDCG, if the two trade places
    scale = math.log2(1 + change) / change
    np.testing.assert_allclose(gradient, [change / 2 * scale, -change / 2 * scale], rtol=1e-6)
    np.testing.assert_allclose(hessian, [change / 4 * scale] * 2, rtol=1e-6)
