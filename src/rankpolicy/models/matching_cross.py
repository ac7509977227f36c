"""Matching Cross Network: a match of query and item that side information scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from rankpolicy.declarations.settings import documented
from rankpolicy.models.latent_cross import ScaledBy
from rankpolicy.models.matches import MATCHES, PairTokens, match_setting
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.text_and_side import TextAndSideModel


class MatchingCrossNetwork(nn.Module):
    """score = net([m * (1 + W side); side]), m the match of query and item, by default their product (Qin et al. 2020).

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
        match: str = "product",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.match = MATCHES[match](embedding_size, generator=generator)
        self.net = MLPNetwork(self.match.size + side_size, hidden=hidden, dropout=dropout, generator=generator)
        self.scaled = ScaledBy(self.match.size, side_size, scale=0.01, generator=generator)

    @property
    def reads_tokens(self) -> bool:
        """Whether the match reads tokens."""
        return self.match.reads_tokens

    def forward(self, query: Tensor, item: Tensor, side: Tensor, tokens: PairTokens | None = None) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side), tokens of the texts -> scores (rows,)"""
        matched = self.match(query, item, tokens)
        scores: Tensor = self.net(torch.cat([self.scaled(matched, side), side], -1))
        return scores


@final
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingCross(TextAndSideModel):
    """Matching Cross Network: the match of query and item, by default their product, scaled by side information (Qin et al. 2020)."""

    name: ClassVar[str] = "matching-cross"
    core: ClassVar[type[nn.Module]] = MatchingCrossNetwork

    match: str = match_setting("product")
