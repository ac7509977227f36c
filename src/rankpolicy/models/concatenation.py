"""Query, item and side information, one vector after the other, for a feed-forward network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankpolicy.models.mlp import MLP


class Concatenation(nn.Module):
    """score = net([query; item; side]): what the network is to know of the match, it has to find out itself."""

    def __init__(
        self, embedding_size: int, side_size: int, *, hidden: tuple[int, ...] = (64, 64), dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.net = MLP(2 * embedding_size + side_size, hidden=hidden, dropout=dropout)

    def forward(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side) -> scores (rows,)"""
        return self.net(torch.cat([query, item, side], -1))
