"""The ways to join a query's vector, an item's and side information into a score."""

from __future__ import annotations

from typing import Protocol

from torch import nn

from rankpolicy.models.concatenation import Concatenation
from rankpolicy.models.cross_network import CrossNetwork
from rankpolicy.models.latent_cross import LatentCross
from rankpolicy.models.matching_cross import Match, MatchingCross


class CrossModel(Protocol):
    """A network with forward(query (rows, embedding), item (rows, embedding), side (rows, side)) -> scores (rows,)."""

    def __call__(
        self, embedding_size: int, side_size: int, *, hidden: tuple[int, ...] = (64, 64), dropout: float = 0.0
    ) -> nn.Module: ...


CROSS_MODELS: dict[str, CrossModel] = {
    "concatenation": Concatenation,
    "latent-cross": LatentCross,
    "match": Match,
    "matching-cross": MatchingCross,
    "cross-network": CrossNetwork,
}
