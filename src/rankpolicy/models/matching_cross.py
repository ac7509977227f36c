"""Matching Cross Network: a match of query and item that side information scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from rankpolicy.models.latent_cross import ScaledBy
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.text_and_side import TextAndSideModel
from rankpolicy.settings import documented


class MatchingCrossNetwork(nn.Module):
    """score = net([m * (1 + W side); side]), m = query * item (Qin et al. 2020).

    Side information that all items of a query share, such as the hour, scales the match and so can change the order of the items.
    W starts small, so that a new network is nearly ``MatchNetwork``; without side information it is exactly that.
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
        self.scaled = ScaledBy(embedding_size, side_size, scale=0.01, generator=generator)

    def forward(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side) -> scores (rows,)"""
        scores: Tensor = self.net(torch.cat([self.scaled(query * item, side), side], -1))
        return scores


@final
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingCross(TextAndSideModel):
    """Matching Cross Network: the elementwise product of query and item, scaled by side information (Qin et al. 2020)."""

    name: ClassVar[str] = "matching-cross"
    core: ClassVar[type[nn.Module]] = MatchingCrossNetwork
