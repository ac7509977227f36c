"""Highway network: layers that learn how much of their input to pass through unchanged."""

from __future__ import annotations

from typing import ClassVar, Literal, final

import torch
from torch import Tensor, nn

from rankpolicy.declarations.settings import frozen_settings
from rankpolicy.models import layers
from rankpolicy.models.layers import ByteDropout
from rankpolicy.models.model import (
    FeatureModel,
    context_of_query,
    dropout_after_projection,
    dropout_rate,
    hidden_layers,
)
from rankpolicy.types import RankPolicyError


class HighwayLayer(nn.Module):
    """y = T(x) * H(x) + (1 - T(x)) * x with gate T = sigmoid(W_T x + b_T), H = relu(W_H x + b_H) (Srivastava et al. 2015)."""

    def __init__(self, width: int, *, dropout: float = 0.0, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.transform = layers.linear(width, width, generator=generator)
        self.gate = layers.linear(width, width, generator=generator)
        self.dropout = ByteDropout(dropout)
        # A negative gate bias starts the layer as nearly the identity, so that deep stacks train.
        nn.init.constant_(self.gate.bias, -1.0)

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., width) -> (..., width)"""
        gate = torch.sigmoid(self.gate(inputs))
        carried: Tensor = gate * self.dropout(torch.relu(self.transform(inputs))) + (1 - gate) * inputs
        return carried


class HighwayNetwork(nn.Module):
    """A projection to the highway's width, one highway layer per entry of ``hidden``, one linear output; all widths are equal."""

    def __init__(
        self,
        num_features: int,
        *,
        hidden: tuple[int, ...] = (92, 92, 92),
        dropout: float = 0.0,
        drops_projection: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        width = hidden[0]
        self.dropout = ByteDropout(dropout if drops_projection else 0.0)
        self.projection = layers.linear(num_features, width, generator=generator)
        self.layers = nn.Sequential(*(HighwayLayer(width, dropout=dropout, generator=generator) for _ in hidden))
        self.output = layers.linear(width, 1, generator=generator)

    def forward(self, features: Tensor) -> Tensor:
        """features (items, features) -> scores (items,)"""
        scores: Tensor = self.output(self.layers(self.dropout(torch.relu(self.projection(features))))).squeeze(-1)
        return scores


def check_equal_widths(hidden: tuple[int, ...]) -> None:
    """Refuse widths that a highway network cannot have."""
    if len(set(hidden)) != 1:
        raise RankPolicyError(
            f"a highway network carries its input past each layer: hidden must be one or more widths, all equal; got {hidden}."
        )


@final
@frozen_settings
class Highway(FeatureModel):
    """A highway network over features: each layer learns how much of its input to pass on unchanged (Srivastava et al. 2015)."""

    name: ClassVar[str] = "highway"

    hidden: tuple[int, ...] = hidden_layers((64, 64), "Width of each highway layer; all must be equal.")
    dropout: float = dropout_rate(0.3)
    dropout_after_projection: bool = dropout_after_projection()
    query_context: str = context_of_query()

    @property
    def context(self) -> Literal["none", "mean"]:
        """What the network reads of the other items of a query."""
        return "mean" if self.query_context == "mean" else "none"

    def _check_together(self) -> None:
        check_equal_widths(self.hidden)

    def new_network_of(self, num_features: int, *, generator: torch.Generator | None = None) -> HighwayNetwork:
        return HighwayNetwork(
            num_features,
            hidden=self.hidden,
            dropout=self.dropout,
            drops_projection=self.dropout_after_projection,
            generator=generator,
        )
