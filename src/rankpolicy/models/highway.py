"""Highway network: layers that learn how much of their input to pass through unchanged."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankpolicy.models.dropout import ByteDropout


class HighwayLayer(nn.Module):
    """y = T(x) * H(x) + (1 - T(x)) * x with gate T = sigmoid(W_T x + b_T), H = relu(W_H x + b_H) (Srivastava et al. 2015)."""

    def __init__(self, width: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.transform = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.dropout = ByteDropout(dropout)
        # A negative gate bias starts the layer as nearly the identity, so that deep stacks train.
        nn.init.constant_(self.gate.bias, -1.0)

    def forward(self, inputs: Tensor) -> Tensor:
        gate = torch.sigmoid(self.gate(inputs))
        return gate * self.dropout(torch.relu(self.transform(inputs))) + (1 - gate) * inputs


class Highway(nn.Module):
    """A projection to the highway's width, highway layers, one linear output. All widths in ``hidden`` must be equal."""

    def __init__(self, num_features: int, *, hidden: tuple[int, ...] = (92, 92, 92), dropout: float = 0.0) -> None:
        super().__init__()
        width = hidden[0]
        self.projection = nn.Linear(num_features, width)
        self.layers = nn.Sequential(*(HighwayLayer(width, dropout=dropout) for _ in hidden))
        self.output = nn.Linear(width, 1)

    def forward(self, features: Tensor) -> Tensor:
        """features (items, features) -> scores (items,)"""
        return self.output(self.layers(torch.relu(self.projection(features)))).squeeze(-1)
