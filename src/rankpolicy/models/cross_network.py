"""DCN-v2: layers that multiply their input by the first one, then a feed-forward network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankpolicy.models.mlp import MLP


class CrossNetwork(nn.Module):
    """score = net(x_L), x_{l+1} = x_0 * (W_l x_l + b_l) + x_l, x_0 = [query; item; side] (Wang et al. 2021, DCN-v2, stacked).

    Every product of up to L + 1 inputs is within its reach; unlike a match, it has to learn which are worth taking.
    """

    def __init__(
        self,
        embedding_size: int,
        side_size: int,
        *,
        hidden: tuple[int, ...] = (64, 64),
        dropout: float = 0.0,
        num_crosses: int = 3,
    ) -> None:
        super().__init__()
        size = 2 * embedding_size + side_size
        self.crosses = nn.ModuleList(nn.Linear(size, size) for _ in range(num_crosses))
        self.net = MLP(size, hidden=hidden, dropout=dropout)

    def forward(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side) -> scores (rows,)"""
        first = torch.cat([query, item, side], -1)
        crossed = first
        for cross in self.crosses:
            crossed = first * cross(crossed) + crossed
        return self.net(crossed)
