"""DCN-v2: layers that multiply their input by the first one, then a feed-forward network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from rankpolicy.declarations.settings import documented
from rankpolicy.models import layers
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.text_and_side import TextAndSideModel


class CrossLayers(nn.ModuleList):
    """x_0 (..., size) -> x_L (..., size), x_{l+1} = x_0 * (W_l x_l + b_l) + x_l."""

    def __init__(self, size: int, num_layers: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__(layers.linear(size, size, generator=generator) for _ in range(num_layers))

    def forward(self, first: Tensor) -> Tensor:
        crossed = first
        for layer in self:
            crossed = first * layer(crossed) + crossed
        return crossed


class DeepCrossNetwork(nn.Module):
    """score = net(x_L), x_{l+1} = x_0 * (W_l x_l + b_l) + x_l, x_0 = [query; item; side] (Wang et al. 2021, DCN-v2, stacked).

    It can form every product of up to L + 1 inputs, and has to learn which of them matter.
    """

    def __init__(
        self,
        embedding_size: int,
        side_size: int,
        *,
        hidden: tuple[int, ...] = (64, 64),
        dropout: float = 0.0,
        num_crosses: int = 3,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        size = 2 * embedding_size + side_size
        self.crosses = CrossLayers(size, num_crosses, generator=generator)
        self.net = MLPNetwork(size, hidden=hidden, dropout=dropout, generator=generator)

    def forward(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side) -> scores (rows,)"""
        scores: Tensor = self.net(self.crosses(torch.cat([query, item, side], -1)))
        return scores


@final
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class CrossNetwork(TextAndSideModel):
    """DCN-v2: three layers that multiply their input by the first one, then a feed-forward network (Wang et al. 2021)."""

    name: ClassVar[str] = "cross-network"
    core: ClassVar[type[nn.Module]] = DeepCrossNetwork
