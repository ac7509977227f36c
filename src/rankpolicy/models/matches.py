"""Ways to match the texts of query and item: two vectors, or two lists of tokens, become one vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from rankpolicy.declarations.settings import setting
from rankpolicy.models import layers


class PairTokens(NamedTuple):
    """The tokens of pairs of texts, padded with 0, and the table of their vectors."""

    query: Tensor  # (..., query token)
    item: Tensor  # (..., item token)
    words: nn.Module  # tokens (...) -> vectors (..., size)


class Match(nn.Module, ABC):
    """query (..., size), item (..., size) -> match (..., ``size``)."""

    reads_tokens: ClassVar[bool] = False

    def __init__(self, embedding_size: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.size = embedding_size

    @abstractmethod
    def forward(self, query: Tensor, item: Tensor, tokens: PairTokens | None) -> Tensor: ...


class ProductMatch(Match):
    """query * item, value by value (Qin et al. 2020)."""

    def forward(self, query: Tensor, item: Tensor, tokens: PairTokens | None) -> Tensor:
        return query * item


class BilinearMatch(Match):
    """query * (item + W item). W starts small, so that a new match is nearly the product."""

    def __init__(self, embedding_size: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__(embedding_size)
        self.weights = layers.linear(embedding_size, embedding_size, bias=False, generator=generator)
        nn.init.normal_(self.weights.weight, std=0.01, generator=generator)

    def forward(self, query: Tensor, item: Tensor, tokens: PairTokens | None) -> Tensor:
        moved: Tensor = self.weights(item)
        return query * (item + moved)


class ProductCosineMatch(Match):
    """[query * item; cosine of query and item]."""

    def __init__(self, embedding_size: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__(embedding_size)
        self.size = embedding_size + 1

    def forward(self, query: Tensor, item: Tensor, tokens: PairTokens | None) -> Tensor:
        return torch.cat([query * item, nn.functional.cosine_similarity(query, item, dim=-1)[..., None]], -1)


class AttentionMatch(Match):
    """query * sum_t a_t v_t over the item's tokens, a = softmax(query . v_t / sqrt(size)): the item as the query sees it."""

    reads_tokens: ClassVar[bool] = True

    def forward(self, query: Tensor, item: Tensor, tokens: PairTokens | None) -> Tensor:
        assert tokens is not None, "this match reads tokens"
        vectors: Tensor = tokens.words(tokens.item)  # (..., token, size)
        # Next to the tokens a zero vector with weight exp(-100): a text without tokens stays the zero vector.
        logits = (vectors @ query[..., None]).squeeze(-1) / self.size**0.5
        logits = logits.masked_fill(tokens.item == 0, -100.0)
        nothing = logits.new_full((*logits.shape[:-1], 1), -100.0)
        weights = torch.cat([logits, nothing], -1).softmax(-1)[..., :-1] * (tokens.item != 0)
        return query * (weights[..., None, :] @ vectors).squeeze(-2)


class FoundMatch(Match):
    """[found; share]: found = 1 / n sum of the vectors of those of the query's n tokens that the item has, share their share.

    An exact match of words and n-grams (as the local model of Mitra, Diaz & Craswell 2017) that says what was found.
    """

    reads_tokens: ClassVar[bool] = True

    def __init__(self, embedding_size: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__(embedding_size)
        self.size = embedding_size + 1

    def forward(self, query: Tensor, item: Tensor, tokens: PairTokens | None) -> Tensor:
        assert tokens is not None, "this match reads tokens"
        is_token = tokens.query != 0
        is_found = (tokens.query[..., :, None] == tokens.item[..., None, :]).any(-1) & is_token
        weights = is_found.to(query.dtype) / is_token.sum(-1, keepdim=True).clamp(min=1)
        vector = (weights[..., None, :] @ tokens.words(tokens.query)).squeeze(-2)
        return torch.cat([vector, weights.sum(-1, keepdim=True)], -1)


class ProductFoundMatch(FoundMatch):
    """[query * item; found; share]: the match of meanings and the exact one."""

    def __init__(self, embedding_size: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__(embedding_size)
        self.size = 2 * embedding_size + 1

    def forward(self, query: Tensor, item: Tensor, tokens: PairTokens | None) -> Tensor:
        return torch.cat([query * item, super().forward(query, item, tokens)], -1)


MATCHES: dict[str, type[Match]] = {
    "product": ProductMatch,
    "bilinear": BilinearMatch,
    "product-cosine": ProductCosineMatch,
    "attention": AttentionMatch,
    "found": FoundMatch,
    "product-found": ProductFoundMatch,
}


def match_setting(default: str) -> Any:
    """How the texts of query and item are matched."""
    help = """How query and item become one vector: "product" (value by value), "bilinear" (the item goes through a matrix first),
    "product-cosine" (the product and the cosine), "attention" (the product with the item's tokens that are most like the query), "found"
    (which of the query's words and n-grams the item has), "product-found" (both). The last three read tokens and take more time."""
    return setting(default, help, choices=MATCHES)
