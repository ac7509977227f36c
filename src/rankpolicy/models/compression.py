"""How a multi-cast attention network turns a vector into one number: F_c of Tay et al. 2018, section 3.3."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from rankpolicy.models import layers


class SumCompression(nn.Module):
    """The sum of the components; nothing to learn."""

    def __init__(self, width: int, generator: torch.Generator | None = None) -> None:
        super().__init__()

    def forward(self, vectors: Tensor) -> Tensor:
        """(..., width) -> (...)"""
        return vectors.sum(-1)


class NeuralCompression(nn.Module):
    """relu(w . x + b)."""

    def __init__(self, width: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.linear = layers.linear(width, 1, generator=generator)

    def forward(self, vectors: Tensor) -> Tensor:
        """(..., width) -> (...)"""
        return torch.relu(self.linear(vectors)).squeeze(-1)


class FactorizationCompression(nn.Module):
    """A factorization machine: w0 + w . x + sum_{i < j} <v_i, v_j> x_i x_j.

    The last sum is 1/2 sum_f [(sum_i v_if x_i)^2 - sum_i v_if^2 x_i^2], which takes width x factors steps.
    """

    def __init__(self, width: int, generator: torch.Generator | None = None, *, num_factors: int = 10) -> None:
        super().__init__()
        self.linear = layers.linear(width, 1, generator=generator)
        self.factors = nn.Parameter(torch.randn(width, num_factors, generator=generator) * 0.01)

    def forward(self, vectors: Tensor) -> Tensor:
        """(..., width) -> (...)"""
        crossed = (vectors @ self.factors).square() - vectors.square() @ self.factors.square()
        value: Tensor = self.linear(vectors).squeeze(-1) + crossed.sum(-1) / 2
        return value


COMPRESSIONS: dict[str, Callable[[int, torch.Generator | None], nn.Module]] = {
    "sum": SumCompression,
    "neural": NeuralCompression,
    "factorization": FactorizationCompression,
}
