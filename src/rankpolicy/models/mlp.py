"""Feed-forward network."""

from __future__ import annotations

from typing import ClassVar, Literal, final

import torch
from torch import Tensor, nn

from rankpolicy.declarations.settings import frozen_settings
from rankpolicy.models import layers
from rankpolicy.models.layers import ByteDropout
from rankpolicy.models.model import (
    HAS_LAYERS,
    FeatureModel,
    context_of_query,
    dropout_rate,
    hidden_layers,
    initial_range,
)


class MLPNetwork(nn.Module):
    """Layers of the widths ``hidden``, each linear -> activation -> dropout, then one linear output."""

    def __init__(
        self,
        num_features: int,
        *,
        hidden: tuple[int, ...] = (64, 64),
        dropout: float = 0.0,
        activation: type[nn.Module] = nn.ReLU,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        widths = (num_features, *hidden)
        modules: list[nn.Module] = []
        for width_in, width_out in zip(widths, hidden, strict=False):
            modules += [
                layers.linear(width_in, width_out, generator=generator),
                activation(),
                ByteDropout(dropout),
            ]
        self.hidden = nn.Sequential(*modules)
        self.output = layers.linear(widths[-1], 1, generator=generator)

    def forward(self, features: Tensor) -> Tensor:
        """features (items, features) -> scores (items,)"""
        scores: Tensor = self.output(self.hidden(features)).squeeze(-1)
        return scores


@final
@frozen_settings
class MLP(FeatureModel):
    """A feed-forward network over features: relu layers with dropout, then one linear output."""

    name: ClassVar[str] = "mlp"

    hidden: tuple[int, ...] = hidden_layers((64, 64), "Width of each hidden layer; () is a linear network.")
    dropout: float = dropout_rate(0.3, read_when=HAS_LAYERS)
    query_context: str = context_of_query(read_when=HAS_LAYERS)
    initial_range: float | None = initial_range()

    @property
    def context(self) -> Literal["none", "mean"]:
        """What the network reads of the other items of a query."""
        return "mean" if self.query_context == "mean" else "none"

    def new_network_of(self, num_features: int, *, generator: torch.Generator | None = None) -> MLPNetwork:
        network = MLPNetwork(num_features, hidden=self.hidden, dropout=self.dropout, generator=generator)
        layers.drawn_within(network, self.initial_range, generator=generator)
        return network
