"""A feed-forward network over query, item and side information whose last layer is scaled by the side information."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from rankpolicy.declarations.settings import documented
from rankpolicy.models.latent_cross import ScaledBy
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.text_and_side import TextAndSideModel


class ConcatenationCrossNetwork(nn.Module):
    """score = output(h * (1 + W side)), h = layers([query; item; side]): concatenation with the latent cross of Beutel et al. 2018.

    W starts small, so that a new network is nearly ``ConcatenationNetwork``; without side information it is exactly that.
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
        self.net = MLPNetwork(2 * embedding_size + side_size, hidden=hidden, dropout=dropout, generator=generator)
        self.scaled = ScaledBy(self.net.output.in_features, side_size, scale=0.01, generator=generator)

    def forward(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side) -> scores (rows,)"""
        last = self.net.hidden(torch.cat([query, item, side], -1))
        scores: Tensor = self.net.output(self.scaled(last, side)).squeeze(-1)
        return scores


@final
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class ConcatenationCross(TextAndSideModel):
    """A network over query, item and side information side by side, its last layer scaled by the side information (Beutel et al. 2018)."""

    name: ClassVar[str] = "concatenation-cross"
    core: ClassVar[type[nn.Module]] = ConcatenationCrossNetwork
