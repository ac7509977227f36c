"""Texts as tensors: the tokens of many texts in one array, and the pairs of query and item texts that a network scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.texts import Texts
from rankpolicy.display import frozen_value


@frozen_value()
class TokenTable:
    """The tokens of many texts in one array: text t has ``lengths[t]`` tokens from ``starts[t]`` on.

    >>> table = TokenTable.of([[5, 6, 7], [8]])
    >>> table.padded(torch.tensor([1, 0]))
    (tensor([[8, 0, 0],
            [5, 6, 7]]), tensor([[ True, False, False],
            [ True,  True,  True]]))
    """

    tokens: Tensor  # Numbers of tokens (tokens,), or their features (tokens, features)
    starts: Tensor  # Index of the first token of each text (texts,)
    lengths: Tensor  # Number of tokens of each text (texts,)

    @classmethod
    def of(cls, numbers: Sequence[Sequence[int]]) -> TokenTable:
        """A table from the token numbers of each text."""
        flat = torch.tensor([number for text in numbers for number in text], dtype=torch.int64)
        return cls.end_to_end(flat, [len(text) for text in numbers])

    @classmethod
    def end_to_end(cls, tokens: Tensor, lengths: Sequence[int]) -> TokenTable:
        """A table from the tokens of all texts, one text after the other."""
        sizes = torch.tensor(lengths, dtype=torch.int64)
        return cls(tokens, sizes.cumsum(0) - sizes, sizes)

    def padded(self, texts: Tensor, *, longest: int | None = None) -> tuple[Tensor, Tensor]:
        """Tokens of some texts (text, token, ...), padded with 0 to the longest of them, and their mask (text, token)."""
        lengths = self.lengths[texts]
        columns = torch.arange(int(lengths.max()) if longest is None else longest, device=lengths.device)
        mask = columns < lengths[:, None]
        tokens = self.tokens[torch.where(mask, self.starts[texts][:, None] + columns, 0)]
        if tokens.is_floating_point():
            return tokens.float().masked_fill(~mask[..., None], 0.0), mask
        return tokens.masked_fill(~mask, 0), mask

    def to(self, device: torch.device | str) -> TokenTable:
        """The same table on another device."""
        return TokenTable(self.tokens.to(device), self.starts.to(device), self.lengths.to(device))


@frozen_value()
class Padded:
    """The distinct texts of a batch, padded."""

    tokens: Tensor  # Tokens (text, token, ...)
    mask: Tensor  # Which tokens are real (text, token)
    of_pair: Tensor  # For each pair the index of its text (pairs,)


@frozen_value()
class SideTensors:
    """Side information of pairs, for networks that read it in addition to the texts."""

    numbers: Tensor  # Scaled numbers (pairs, numbers)
    categories: Tensor  # Codes of categories (pairs, categories)

    def __getitem__(self, rows: Tensor | slice) -> SideTensors:
        return SideTensors(self.numbers[rows], self.categories[rows])

    def to(self, device: torch.device | str) -> SideTensors:
        """The same values on another device."""
        return SideTensors(self.numbers.to(device), self.categories.to(device))


@frozen_value()
class TextPairs:
    """The input of a text network, one row per item; it can be indexed like a tensor of features."""

    queries: TokenTable | None  # Texts of queries; None if a pretrained model has read query and item together
    items: TokenTable  # Texts of items, or of pairs of query and item read together
    query_of_pair: Tensor  # For each pair the indices of its texts (pairs,)
    item_of_pair: Tensor  # For each pair the indices of its texts (pairs,)
    side: SideTensors | None = None  # Side information, or None

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
        """Where the tensors are."""
        return self.item_of_pair.device

    def to(self, device: torch.device | str) -> TextPairs:
        """The same pairs on another device."""
        return TextPairs(
            None if self.queries is None else self.queries.to(device),
            self.items.to(device),
            self.query_of_pair.to(device),
            self.item_of_pair.to(device),
            None if self.side is None else self.side.to(device),
        )

    def padded_queries(self) -> Padded:
        """The texts of the queries of these pairs, each once."""
        assert self.queries is not None, "query and item were read together"
        return _padded(self.queries, self.query_of_pair)

    def padded_items(self) -> Padded:
        """The texts of the items of these pairs, each once."""
        return _padded(self.items, self.item_of_pair)

    def blocks(self, pairs_per_block: int = 1024) -> Iterator[TextPairs]:
        """All pairs in blocks, because attention over all at once would not fit into memory."""
        for first in range(0, len(self), pairs_per_block):
            yield self[first : first + pairs_per_block]


@frozen_value()
class PaddedPairs:
    """Pairs whose texts are padded already: for a network, the same as ``TextPairs``."""

    queries: Padded | None  # Texts of queries; None if a pretrained model has read query and item together
    items: Padded  # Texts of items
    side: SideTensors | None = None  # Side information, or None

    def __len__(self) -> int:
        return len(self.items.of_pair)

    def padded_queries(self) -> Padded:
        """The texts of the queries."""
        assert self.queries is not None, "query and item were read together"
        return self.queries

    def padded_items(self) -> Padded:
        """The texts of the items."""
        return self.items


def _padded(table: TokenTable, text_of_pair: Tensor) -> Padded:
    texts, of_pair = torch.unique(text_of_pair, return_inverse=True)
    return Padded(*table.padded(texts), of_pair)


def texts_of(dataset: RankingDataset) -> Texts:
    """The texts of a dataset that has some."""
    assert dataset.texts_by_query is not None, "checked when the dataset came in"
    return dataset.texts_by_query


def pairs_read_apart(dataset: RankingDataset, table: Callable[[Sequence[str]], TokenTable]) -> TextPairs:
    """One pair per item; ``table`` turns texts into tokens, each distinct item text once."""
    texts = texts_of(dataset)
    used, item_of_pair = np.unique(texts.of_item, return_inverse=True)
    return TextPairs(
        table(texts.queries),
        table([texts.distinct[index] for index in used]),
        torch.from_numpy(dataset.query_numbers),
        torch.from_numpy(item_of_pair),
    )
