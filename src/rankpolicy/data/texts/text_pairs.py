"""Texts as tensors: sequences of many texts end to end, and the pairs of a query's text with an item's that a network scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """The tokens of many texts, flat: text t owns ``lengths[t]`` of them from ``starts[t]``. A token is a number or a vector.

    >>> table = TokenTable.of([[5, 6, 7], [8]])
    >>> table.padded(torch.tensor([1, 0]))
    (tensor([[8, 0, 0],
            [5, 6, 7]]), tensor([[ True, False, False],
            [ True,  True,  True]]))
    """

    tokens: Tensor  # (tokens,) numbers, or (tokens, features)
    starts: Tensor  # (texts,)
    lengths: Tensor  # (texts,)

    @classmethod
    def of(cls, numbers: Sequence[Sequence[int]]) -> TokenTable:
        """A table from the numbers of the tokens of each text."""
        flat = torch.tensor([number for text in numbers for number in text], dtype=torch.int64)
        return cls.end_to_end(flat, [len(text) for text in numbers])

    @classmethod
    def end_to_end(cls, tokens: Tensor, lengths: Sequence[int]) -> TokenTable:
        """A table of texts of these lengths, one after the other."""
        sizes = torch.tensor(lengths, dtype=torch.int64)
        return cls(tokens, sizes.cumsum(0) - sizes, sizes)

    def padded(self, texts: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens of these texts, padded with 0 to the longest of them, and which are real: (text, token, ...), (text, token)."""
        lengths = self.lengths[texts]
        columns = torch.arange(int(lengths.max()), device=lengths.device)
        mask = columns < lengths[:, None]
        tokens = self.tokens[torch.where(mask, self.starts[texts][:, None] + columns, 0)]
        if tokens.is_floating_point():
            return tokens.float().masked_fill(~mask[..., None], 0.0), mask
        return tokens.masked_fill(~mask, 0), mask

    def to(self, device: torch.device | str) -> TokenTable:
        return TokenTable(self.tokens.to(device), self.starts.to(device), self.lengths.to(device))


@dataclass(frozen=True, slots=True, eq=False)
class Padded:
    """The distinct texts of a batch, padded, and which of them each pair has."""

    tokens: Tensor  # (text, token, ...)
    mask: Tensor  # (text, token)
    of_pair: Tensor  # (pairs,)


@dataclass(frozen=True, slots=True, eq=False)
class SideTensors:
    """Side information of pairs as numbers, for networks that read it beside the texts."""

    numbers: Tensor  # (pairs, numbers) scaled
    categories: Tensor  # (pairs, categories) codes

    def __getitem__(self, rows: Tensor | slice) -> SideTensors:
        return SideTensors(self.numbers[rows], self.categories[rows])

    def to(self, device: torch.device | str) -> SideTensors:
        return SideTensors(self.numbers.to(device), self.categories.to(device))


@dataclass(frozen=True, slots=True, eq=False)
class TextPairs:
    """What a text network scores, a row an item; indexed as a tensor of features would be.

    Where a pretrained model has read query and item together, ``queries`` is None and ``items`` holds a text a pair.
    """

    queries: TokenTable | None
    items: TokenTable
    query_of_pair: Tensor  # (pairs,)
    item_of_pair: Tensor  # (pairs,)
    side: SideTensors | None = None

    def __len__(self) -> int:
        return len(self.item_of_pair)

    def __getitem__(self, rows: Tensor | slice) -> TextPairs:
        return replace(
            self,
            query_of_pair=self.query_of_pair[rows],
            item_of_pair=self.item_of_pair[rows],
            side=None if self.side is None else self.side[rows],
        )

    @property
    def device(self) -> torch.device:
        return self.item_of_pair.device

    def to(self, device: torch.device | str) -> TextPairs:
        return TextPairs(
            None if self.queries is None else self.queries.to(device),
            self.items.to(device),
            self.query_of_pair.to(device),
            self.item_of_pair.to(device),
            None if self.side is None else self.side.to(device),
        )

    def padded_queries(self) -> Padded:
        """The texts of queries, each once however many items it has."""
        assert self.queries is not None, "query and item were read together"
        return _padded(self.queries, self.query_of_pair)

    def padded_items(self) -> Padded:
        return _padded(self.items, self.item_of_pair)

    def blocks(self, pairs_of_a_block: int = 1024) -> Iterator[TextPairs]:
        """All pairs, some at a time: attention over everything at once would not fit into memory."""
        for first in range(0, len(self), pairs_of_a_block):
            yield self[first : first + pairs_of_a_block]


def _padded(table: TokenTable, text_of_pair: Tensor) -> Padded:
    texts, of_pair = torch.unique(text_of_pair, return_inverse=True)
    return Padded(*table.padded(texts), of_pair)
