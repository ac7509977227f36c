"""One weight per feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from rankpolicy.declarations.settings import frozen_settings
from rankpolicy.models.linear_networks import LinearNetworks
from rankpolicy.models.model import FeatureModel, initial_range

if TYPE_CHECKING:
    import torch

    from rankpolicy.models.mlp import MLPNetwork


@final
@frozen_settings
class Linear(FeatureModel):
    """A weighted sum of the features: score = w . x + b."""

    name: ClassVar[str] = "linear"

    initial_range: float | None = initial_range()

    def new_network_of(self, num_features: int, *, generator: torch.Generator | None = None) -> MLPNetwork:
        from rankpolicy.models.layers import drawn_within
        from rankpolicy.models.mlp import MLPNetwork

        network = MLPNetwork(num_features, hidden=(), generator=generator)
        drawn_within(network, self.initial_range, generator=generator)
        return network

    def new_networks(self, num_columns: int, *, num_networks: int, generator: np.random.Generator) -> LinearNetworks:
        """Networks as arrays, for training without torch.

        Parameters
        ----------
        num_columns
            How many columns the networks read.
        num_networks
            How many there are.
        generator
            Where initial weights are drawn from.
        """
        return LinearNetworks.drawn(num_networks, num_columns, within=self.initial_range, generator=generator)
