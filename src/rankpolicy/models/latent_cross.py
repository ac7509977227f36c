"""Latent cross: a vector scales the values of another, one by one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankpolicy.models.mlp import MLP


class ScaledBy(nn.Module):
    """values * (1 + W context) (Beutel et al. 2018), W drawn from a normal distribution of standard deviation ``scale``.

    Where ``scale`` is small, a new one leaves values nearly as they are; a context of zeros always does.

    >>> scaled = ScaledBy(2, 1, scale=0.01)
    >>> _ = nn.init.constant_(scaled.weights.weight, 0.5)
    >>> scaled(torch.tensor([[3.0, 4.0]]), torch.tensor([[2.0]])).tolist()
    [[6.0, 8.0]]
    """

    def __init__(self, num_values: int, num_context: int, *, scale: float) -> None:
        super().__init__()
        self.weights = nn.Linear(num_context, num_values, bias=False) if num_context else None
        if self.weights is not None:
            nn.init.normal_(self.weights.weight, std=scale)

    def forward(self, values: Tensor, context: Tensor) -> Tensor:
        """values (rows, values), context (rows, context) -> (rows, values)"""
        return values if self.weights is None else values * (1 + self.weights(context))


class LatentCross(nn.Module):
    """score = output(h * (1 + W query)), h = layers([item; side]).

    The arm of Qin et al. (2020): item and side information enter the network, the query multiplies its last hidden layer.
    """

    def __init__(
        self, embedding_size: int, side_size: int, *, hidden: tuple[int, ...] = (64, 64), dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.net = MLP(embedding_size + side_size, hidden=hidden, dropout=dropout)
        # The query is seen nowhere else: from a small W the network learns the training items by heart before it looks at queries.
        self.scaled = ScaledBy(self.net.output.in_features, embedding_size, scale=1.0)

    def forward(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side) -> scores (rows,)"""
        last = self.net.hidden(torch.cat([item, side], -1))
        return self.net.output(self.scaled(last, query)).squeeze(-1)
