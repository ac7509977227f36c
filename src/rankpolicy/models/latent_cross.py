"""Latent cross: the query scales the hidden values of a network, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from rankpolicy.declarations.settings import documented
from rankpolicy.models import layers
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.text_and_side import TextAndSideModel


class ScaledBy(nn.Module):
    """values * (1 + W context) (Beutel et al. 2018), W drawn from a normal distribution of standard deviation ``scale``.

    With a small ``scale`` a new module leaves values nearly unchanged; a context of zeros always does.

    >>> scaled = ScaledBy(2, 1, scale=0.01)
    >>> _ = nn.init.constant_(scaled.weights.weight, 0.5)
    >>> scaled(torch.tensor([[3.0, 4.0]]), torch.tensor([[2.0]])).tolist()
    [[6.0, 8.0]]
    """

    def __init__(
        self, num_values: int, num_context: int, *, scale: float, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.weights = None
        if num_context:
            self.weights = layers.linear(num_context, num_values, bias=False, generator=generator)
            nn.init.normal_(self.weights.weight, std=scale, generator=generator)

    def forward(self, values: Tensor, context: Tensor) -> Tensor:
        """values (rows, values), context (rows, context) -> (rows, values)"""
        if self.weights is None:
            return values
        scaled: Tensor = values * (1 + self.weights(context))
        return scaled


class LatentCrossNetwork(nn.Module):
    """score = output(h * (1 + W query)), h = layers([item; side]).

    Item and side information enter the network; the query multiplies its last hidden layer (an arm of Qin et al. 2020).
    """

    def __init__(
        self,
        embedding_size: int,
        side_size: int,
        *,
        hidden: tuple[int, ...] = (64, 64),
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.net = MLPNetwork(embedding_size + side_size, hidden=hidden, dropout=dropout, generator=generator)
        # The query enters nowhere else: from a small W the network would memorize the training items before it looks at queries.
        self.scaled = ScaledBy(self.net.output.in_features, embedding_size, scale=1.0, generator=generator)

    def forward(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side) -> scores (rows,)"""
        last = self.net.hidden(torch.cat([item, side], -1))
        scores: Tensor = self.net.output(self.scaled(last, query)).squeeze(-1)
        return scores


@final
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class LatentCross(TextAndSideModel):
    """A network over item and side information whose last layer is scaled by the query (Beutel et al. 2018; Qin et al. 2020)."""

    name: ClassVar[str] = "latent-cross"
    core: ClassVar[type[nn.Module]] = LatentCrossNetwork
