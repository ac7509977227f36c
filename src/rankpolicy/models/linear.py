"""One weight a feature."""

from __future__ import annotations

from torch import Tensor, nn


class Linear(nn.Module):
    """score = w . x + b."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.output = nn.Linear(num_features, 1)

    def forward(self, features: Tensor) -> Tensor:
        """features (items, features) -> scores (items,)"""
        return self.output(features).squeeze(-1)
