"""How a multi-cast attention network turns a vector into one number: F_c of Tay et al. 2018, section 3.3."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class SumCompression(nn.Module):
    """The sum of the components; nothing to learn."""

    def __init__(self, width: int) -> None:
        super().__init__()

    def forward(self, vectors: Tensor) -> Tensor:
        return vectors.sum(-1)


class NeuralCompression(nn.Module):
    """relu(w . x + b)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)

    def forward(self, vectors: Tensor) -> Tensor:
        return torch.relu(self.linear(vectors)).squeeze(-1)


class FactorizationCompression(nn.Module):
    """A factorisation machine: w0 + w . x + sum_{i < j} <v_i, v_j> x_i x_j.

    The last sum is 1/2 sum_f [(sum_i v_if x_i)^2 - sum_i v_if^2 x_i^2], which takes width x factors steps.
    """

    def __init__(self, width: int, num_factors: int = 10) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)
        self.factors = nn.Parameter(torch.randn(width, num_factors) * 0.01)

    def forward(self, vectors: Tensor) -> Tensor:
        crossed = (vectors @ self.factors).square() - vectors.square() @ self.factors.square()
        return self.linear(vectors).squeeze(-1) + crossed.sum(-1) / 2


COMPRESSIONS: dict[str, Callable[[int], nn.Module]] = {
    "sum": SumCompression,
    "neural": NeuralCompression,
    "factorization": FactorizationCompression,
}
