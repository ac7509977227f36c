"""A network over the texts of query and item and the side information of the pair."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable

CATEGORY_SCALE = 0.1  # standard deviation of a new category's vector: near nothing, yet not all the same


class TextAndSide(nn.Module):
    """score = core(query, item, side) of a pair.

    query and item are the means of the vectors of their tokens, from one table; a text without tokens is the zero vector.
    side = [numbers; a vector of each category's code]. ``core`` is one of ``CROSS_MODELS`` for these sizes.
    """

    def __init__(
        self,
        core: nn.Module,
        word_vectors: Tensor,  # (numbers of the vocabulary, size); number 0 is no token
        num_categories: Sequence[int],  # codes of each column
        category_size: int,
        num_numbers: int,
    ) -> None:
        super().__init__()
        self.core = core
        self.words = nn.Embedding.from_pretrained(word_vectors, freeze=False, padding_idx=0)
        columns = [nn.Embedding(count, category_size) for count in num_categories]
        for column in columns:
            nn.init.normal_(column.weight, std=CATEGORY_SCALE)
        self.categories = nn.ModuleList(columns)
        self.num_categories, self.num_numbers = tuple(num_categories), num_numbers

    def forward(self, pairs: TextPairs) -> Tensor:
        """pairs -> scores (pairs,)"""
        return self.core(*self.vectors(pairs))

    def vectors(self, pairs: TextPairs) -> tuple[Tensor, Tensor, Tensor]:
        """The query (pairs, size), the item (pairs, size) and the side information (pairs, side) of each pair."""
        assert pairs.queries is not None, "query and item were read together"
        query = self._means(pairs.queries, pairs.query_of_pair)
        item = self._means(pairs.items, pairs.item_of_pair)
        if pairs.side is None:
            nothing = (len(pairs), 0)
            return query, item, self.side_vectors(query.new_empty(nothing), pairs.item_of_pair.new_empty(nothing))
        return query, item, self.side_vectors(pairs.side.numbers, pairs.side.categories)

    def side_vectors(self, numbers: Tensor, categories: Tensor) -> Tensor:
        """numbers (..., numbers), codes (..., categories) -> (..., side)"""
        assert numbers.shape[-1] == self.num_numbers, "as many numbers as the network was built for"
        assert categories.shape[-1] == len(self.num_categories), "as many categories as the network was built for"
        columns = [column(categories[..., place]) for place, column in enumerate(self.categories)]
        return torch.cat([numbers, *columns], -1)

    def _means(self, table: TokenTable, text_of_pair: Tensor) -> Tensor:
        """The mean vector of each pair's text, computed once however many pairs have it."""
        texts, of_pair = torch.unique(text_of_pair, return_inverse=True)
        lengths = table.lengths[texts]
        starts = lengths.cumsum(0) - lengths
        places = torch.arange(int(lengths.sum()), device=lengths.device)
        tokens = table.tokens[places + torch.repeat_interleave(table.starts[texts] - starts, lengths)]
        return nn.functional.embedding_bag(tokens, self.words.weight, starts, mode="mean")[of_pair]
