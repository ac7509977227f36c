"""Networks that match query and item before anything else: Matching Cross Network, and its match without the cross."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankpolicy.models.latent_cross import ScaledBy
from rankpolicy.models.mlp import MLP


class Match(nn.Module):
    """score = net([query * item; side]): the Hadamard product of the two vectors, then side information beside it."""

    def __init__(
        self, embedding_size: int, side_size: int, *, hidden: tuple[int, ...] = (64, 64), dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.net = MLP(embedding_size + side_size, hidden=hidden, dropout=dropout)

    def forward(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side) -> scores (rows,)"""
        return self.net(torch.cat([query * item, side], -1))


class MatchingCross(nn.Module):
    """score = net([m * (1 + W side); side]), m = query * item (Qin et al. 2020).

    Side information that all items of a query share, such as the hour, scales what a match is worth, and so changes their order.
    W starts small: a new network is nearly ``Match``; without side information it is.
    """

    def __init__(
        self, embedding_size: int, side_size: int, *, hidden: tuple[int, ...] = (64, 64), dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.net = MLP(embedding_size + side_size, hidden=hidden, dropout=dropout)
        self.scaled = ScaledBy(embedding_size, side_size, scale=0.01)

    def forward(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side) -> scores (rows,)"""
        return self.net(torch.cat([self.scaled(query * item, side), side], -1))
