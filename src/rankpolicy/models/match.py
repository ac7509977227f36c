"""Match: query and item multiplied value by value, then a feed-forward network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from rankpolicy.declarations.settings import documented
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.text_and_side import TextAndSideModel


class MatchNetwork(nn.Module):
    """score = net([query * item; side]): the elementwise product of the two vectors, with side information beside it."""

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

    def forward(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side) -> scores (rows,)"""
        scores: Tensor = self.net(torch.cat([query * item, side], -1))
        return scores


@final
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class Match(TextAndSideModel):
    """A network over the elementwise product of query and item, with side information beside it."""

    name: ClassVar[str] = "match"
    core: ClassVar[type[nn.Module]] = MatchNetwork
