"""One weight per feature."""

from __future__ import annotations

from typing import ClassVar, final

import torch
from torch import Tensor, nn

from rankpolicy.declarations.settings import frozen_settings
from rankpolicy.models import layers
from rankpolicy.models.model import FeatureModel, initial_range


class LinearNetwork(nn.Module):
    """score = w . x + b."""

    def __init__(self, num_features: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.output = layers.linear(num_features, 1, generator=generator)

    def forward(self, features: Tensor) -> Tensor:
        """features (items, features) -> scores (items,)"""
        scores: Tensor = self.output(features).squeeze(-1)
        return scores


@final
@frozen_settings
class Linear(FeatureModel):
    """A weighted sum of the features: score = w . x + b."""

    name: ClassVar[str] = "linear"

    initial_range: float | None = initial_range()

    def new_network_of(self, num_features: int, *, generator: torch.Generator | None = None) -> LinearNetwork:
        network = LinearNetwork(num_features, generator=generator)
        layers.drawn_within(network, self.initial_range, generator=generator)
        return network
