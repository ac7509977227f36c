"""Networks that join the vectors of query, item and side information, each with the settings value that describes it.

Plain: concatenation, match. A layer scaled by a context (Beutel et al. 2018): latent cross, concatenation cross, matching cross. Inputs
multiplied by each other (DCN-v2): cross network, deep matching cross.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, final

import torch
from torch import Tensor, nn

from rankpolicy.declarations.settings import frozen_settings
from rankpolicy.models import layers
from rankpolicy.models.matches import MATCHES, PairTokens, match_setting
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.text_and_side import TextAndSideModel


class ScaledBy(nn.Module):
    """values * (1 + W context) (Beutel et al. 2018), W drawn from a normal distribution of standard deviation ``scale``.

    With a small ``scale`` a new module leaves values nearly unchanged; a context of zeros always does.

    >>> scaled = ScaledBy(2, 1, scale=0.01)
    >>> _ = nn.init.constant_(scaled.weights.weight, 0.5)
    >>> scaled(torch.tensor([[3.0, 4.0]]), torch.tensor([[2.0]])).tolist()
    [[6.0, 8.0]]
    """

    def __init__(
        self, num_values: int, num_context: int, *, scale: float, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.weights = None
        if num_context:
            self.weights = layers.linear(num_context, num_values, bias=False, generator=generator)
            nn.init.normal_(self.weights.weight, std=scale, generator=generator)

    def forward(self, values: Tensor, context: Tensor) -> Tensor:
        """values (rows, values), context (rows, context) -> (rows, values)"""
        if self.weights is None:
            return values
        scaled: Tensor = values * (1 + self.weights(context))
        return scaled


class SideNetwork(nn.Module, ABC):
    """score = output(h), h = layers(joined(query, item, side)); or output(h * (1 + W context)), the context being query or side."""

    num_vectors: ClassVar[int]  # of the size of query and item among what is joined with the side information
    scaled_by: ClassVar[Literal["nothing", "query", "side"]] = "nothing"
    scale: ClassVar[float] = 0.01  # of W in a new network

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
        size = self.num_vectors * embedding_size + side_size
        self.net = MLPNetwork(size, hidden=hidden, dropout=dropout, generator=generator)
        self.scaled = None
        if self.scaled_by != "nothing":
            num_context = embedding_size if self.scaled_by == "query" else side_size
            self.scaled = ScaledBy(self.net.output.in_features, num_context, scale=self.scale, generator=generator)

    def forward(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side) -> scores (rows,)"""
        last = self.net.hidden(self.joined(query, item, side))
        if self.scaled is not None:
            last = self.scaled(last, query if self.scaled_by == "query" else side)
        scores: Tensor = self.net.output(last).squeeze(-1)
        return scores

    @abstractmethod
    def joined(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        """What enters the network (rows, num_vectors * embedding + side)."""


class ConcatenationNetwork(SideNetwork):
    """score = net([query; item; side])."""

    num_vectors: ClassVar[int] = 2

    def joined(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        return torch.cat([query, item, side], -1)


@final
@frozen_settings
class Concatenation(TextAndSideModel):
    """A feed-forward network over query, item and side information side by side; any match it has to learn itself."""

    name: ClassVar[str] = "concatenation"
    core: ClassVar[type[nn.Module]] = ConcatenationNetwork


class MatchNetwork(SideNetwork):
    """score = net([query * item; side]): the elementwise product of the two vectors, with side information next to it."""

    num_vectors: ClassVar[int] = 1

    def joined(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        return torch.cat([query * item, side], -1)


@final
@frozen_settings
class Match(TextAndSideModel):
    """A network over the elementwise product of query and item, with side information next to it."""

    name: ClassVar[str] = "match"
    core: ClassVar[type[nn.Module]] = MatchNetwork


class LatentCrossNetwork(SideNetwork):
    """score = output(h * (1 + W query)), h = layers([item; side]).

    Item and side information enter the network; the query multiplies its last hidden layer (an arm of Qin et al. 2020).
    """

    num_vectors: ClassVar[int] = 1
    scaled_by: ClassVar[Literal["nothing", "query", "side"]] = "query"
    # The query enters nowhere else: from a small W the network would memorize the training items before it looks at queries.
    scale: ClassVar[float] = 1.0

    def joined(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        return torch.cat([item, side], -1)


@final
@frozen_settings
class LatentCross(TextAndSideModel):
    """A network over item and side information whose last layer is scaled by the query (Beutel et al. 2018; Qin et al. 2020)."""

    name: ClassVar[str] = "latent-cross"
    core: ClassVar[type[nn.Module]] = LatentCrossNetwork


class ConcatenationCrossNetwork(ConcatenationNetwork):
    """score = output(h * (1 + W side)), h = layers([query; item; side]): concatenation with the latent cross of Beutel et al. 2018.

    W starts small, so that a new network is nearly ``ConcatenationNetwork``; without side information it is exactly that.
    """

    scaled_by: ClassVar[Literal["nothing", "query", "side"]] = "side"


@final
@frozen_settings
class ConcatenationCross(TextAndSideModel):
    """A network over query, item and side information side by side, its last layer scaled by the side information (Beutel et al. 2018)."""

    name: ClassVar[str] = "concatenation-cross"
    core: ClassVar[type[nn.Module]] = ConcatenationCrossNetwork


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
@frozen_settings
class MatchingCross(TextAndSideModel):
    """Matching Cross Network: the match of query and item, by default their product, scaled by side information (Qin et al. 2020)."""

    name: ClassVar[str] = "matching-cross"
    core: ClassVar[type[nn.Module]] = MatchingCrossNetwork

    match: str = match_setting("product")


class CrossLayers(nn.ModuleList):
    """x_0 (..., size) -> x_L (..., size), x_{l+1} = x_0 * (W_l x_l + b_l) + x_l."""

    def __init__(self, size: int, num_layers: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__(layers.linear(size, size, generator=generator) for _ in range(num_layers))

    def forward(self, first: Tensor) -> Tensor:
        crossed = first
        for layer in self:
            crossed = first * layer(crossed) + crossed
        return crossed


class DeepCrossNetwork(nn.Module):
    """score = net(x_L), x_{l+1} = x_0 * (W_l x_l + b_l) + x_l, x_0 = [query; item; side] (Wang et al. 2021, DCN-v2, stacked).

    It can form every product of up to L + 1 inputs, and has to learn which of them matter.
    """

    def __init__(
        self,
        embedding_size: int,
        side_size: int,
        *,
        hidden: tuple[int, ...] = (64, 64),
        dropout: float = 0.0,
        num_crosses: int = 3,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        size = 2 * embedding_size + side_size
        self.crosses = CrossLayers(size, num_crosses, generator=generator)
        self.net = MLPNetwork(size, hidden=hidden, dropout=dropout, generator=generator)

    def forward(self, query: Tensor, item: Tensor, side: Tensor) -> Tensor:
        """query (rows, embedding), item (rows, embedding), side (rows, side) -> scores (rows,)"""
        scores: Tensor = self.net(self.crosses(torch.cat([query, item, side], -1)))
        return scores


@final
@frozen_settings
class CrossNetwork(TextAndSideModel):
    """DCN-v2: three layers that multiply their input by the first one, then a feed-forward network (Wang et al. 2021)."""

    name: ClassVar[str] = "cross-network"
    core: ClassVar[type[nn.Module]] = DeepCrossNetwork


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
@frozen_settings
class DeepMatchingCross(TextAndSideModel):
    """Two cross layers over query, item, their match and side information, then a network: Matching Cross and DCN-v2 in one."""

    name: ClassVar[str] = "deep-matching-cross"
    core: ClassVar[type[nn.Module]] = DeepMatchingCrossNetwork

    match: str = match_setting("product-found")
