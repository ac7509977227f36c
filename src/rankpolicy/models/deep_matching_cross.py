"""Cross layers over query, item, their match and side information, then a feed-forward network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from rankpolicy.declarations.settings import documented
from rankpolicy.models.cross_network import CrossLayers
from rankpolicy.models.matches import MATCHES, PairTokens, match_setting
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.text_and_side import TextAndSideModel


class DeepMatchingCrossNetwork(nn.Module):
    """score = net(x_L), x_{l+1} = x_0 * (W_l x_l + b_l) + x_l, x_0 = [query; item; match; side].

    The match is given to the cross layers of DCN-v2 (Wang et al. 2021) instead of being left for them to find: one layer then suffices for
    a product of the match and side information, two for one more factor.
    """

    def __init__(
        self,
        embedding_size: int,
        side_size: int,
        *,
        hidden: tuple[int, ...] = (64, 64),
        dropout: float = 0.0,
        num_crosses: int = 2,
        match: str = "product-found",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.match = MATCHES[match](embedding_size, generator=generator)
        size = 2 * embedding_size + self.match.size + side_size
        self.crosses = CrossLayers(size, num_crosses, generator=generator)
        self.net = MLPNetwork(size, hidden=hidden, dropout=dropout, generator=generator)

    @property
    def reads_tokens(self) -> bool:
        """Whether the match reads tokens."""
        return self.match.reads_tokens

    def forward(self, query: Tensor, item: Tensor, side: Tensor, tokens: PairTokens | None = None) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side), tokens of the texts -> scores (rows,)"""
        matched = self.match(query, item, tokens)
        scores: Tensor = self.net(self.crosses(torch.cat([query, item, matched, side], -1)))
        return scores


@final
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class DeepMatchingCross(TextAndSideModel):
    """Two cross layers over query, item, their match and side information, then a network: Matching Cross and DCN-v2 in one."""

    name: ClassVar[str] = "deep-matching-cross"
    core: ClassVar[type[nn.Module]] = DeepMatchingCrossNetwork

    match: str = match_setting("product-found")
