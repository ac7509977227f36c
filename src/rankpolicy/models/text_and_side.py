"""A network over the texts of query and item and the side information of the pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable
from rankpolicy.declarations.settings import ReadWhen, setting, setting_names
from rankpolicy.models import layers
from rankpolicy.models.inputs.words_and_side import USUAL_MIN_USERS, MatchInputs
from rankpolicy.models.matches import PairTokens
from rankpolicy.models.model import HAS_LAYERS, Model, dropout_rate, hidden_layers, longest_text
from rankpolicy.types import RankPolicyError

CATEGORY_SCALE = 0.1  # standard deviation of a new category's vector: small, yet different for each


class TextAndSide(nn.Module):
    """score = core(query, item, side) of a pair.

    query and item are the means of the vectors of their tokens, from one table; a text without tokens is the zero vector.
    side = [numbers; one vector per category]. ``core`` is what ``TextAndSideModel.new_core`` makes for these sizes.
    """

    def __init__(
        self,
        core: nn.Module,
        word_vectors: Tensor,  # (numbers of the vocabulary, size); number 0 is no token
        num_categories: Sequence[int],  # codes of each column
        category_size: int,
        num_numbers: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.core = core
        self.words = nn.Embedding.from_pretrained(word_vectors, freeze=False, padding_idx=0)
        self.categories = nn.ModuleList(
            layers.embedding(count, category_size, scale=CATEGORY_SCALE, generator=generator)
            for count in num_categories
        )
        self.num_categories, self.num_numbers = tuple(num_categories), num_numbers

    def forward(self, pairs: TextPairs) -> Tensor:
        """pairs -> scores (pairs,)"""
        scores: Tensor = self.core(*self.vectors(pairs), *self._tokens(pairs))
        return scores

    @property
    def reads_tokens(self) -> bool:
        """Whether the core reads the tokens of the texts as well as their means."""
        return bool(getattr(self.core, "reads_tokens", False))

    def _tokens(self, pairs: TextPairs) -> tuple[PairTokens, ...]:
        """The tokens of each pair, if the core reads them."""
        if not self.reads_tokens:
            return ()
        assert pairs.queries is not None, "query and item were read together"
        query = pairs.queries.padded(pairs.query_of_pair)[0]
        return (PairTokens(query, pairs.items.padded(pairs.item_of_pair)[0], self.words),)

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
        columns = [column(categories[..., index]) for index, column in enumerate(self.categories)]
        return torch.cat([numbers, *columns], -1)

    def _means(self, table: TokenTable, text_of_pair: Tensor) -> Tensor:
        """The mean vector of each pair's text, computed once however many pairs have it."""
        texts, of_pair = torch.unique(text_of_pair, return_inverse=True)
        lengths = table.lengths[texts]
        starts = lengths.cumsum(0) - lengths
        token_indices = torch.arange(int(lengths.sum()), device=lengths.device)
        tokens = table.tokens[token_indices + torch.repeat_interleave(table.starts[texts] - starts, lengths)]
        return nn.functional.embedding_bag(tokens, self.words.weight, starts, mode="mean")[of_pair]


_NO_GIVEN_VECTORS = ReadWhen(
    condition="neither embeddings nor encoder is given",
    holds=lambda model: model.embeddings is None and model.encoder is None,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextAndSideModel(Model):
    """A model over the texts of query and item and side columns; what is left to each is how it joins their vectors."""

    reads: ClassVar[Literal["features", "texts"]] = "texts"
    core: ClassVar[type[nn.Module]]  # the network that joins the vectors

    min_users: int | None = setting(
        None,
        f"""How many users must have seen a word, n-gram or category in the training data for it to be kept, so that the model file does
        not hold what a few users typed. None: {USUAL_MIN_USERS} where the data tell users, else everything is kept; 1 keeps everything.""",
        at_least=1,
    )
    ngrams: tuple[int, ...] = setting(
        (3,),
        "Lengths of the letter n-grams read besides words; they help with typing errors and rare words. () reads words only.",
        at_least=2,
    )
    num_buckets: int = setting(65536, "How many vectors all words and n-grams share, by their hash.", at_least=1)
    category_size: int = setting(8, "Size of the vector of a category in a side column.", at_least=1)
    embedding_size: int = setting(32, "Size of random word vectors.", at_least=1, read_when=_NO_GIVEN_VECTORS)
    embeddings: str | None = setting(
        None, "File of initial word vectors in GloVe's text format; they are trained further. None: random ones."
    )
    encoder: str | None = setting(
        None, "Folder of a Hugging Face model whose input vectors are the initial word vectors. None: random ones."
    )
    hidden: tuple[int, ...] = hidden_layers((64, 32), "Width of each hidden layer after the vectors are joined.")
    dropout: float = dropout_rate(0.1, read_when=HAS_LAYERS)
    max_tokens: int = longest_text(1)

    def _check_together(self) -> None:
        if self.embeddings is not None and self.encoder is not None:
            raise RankPolicyError("initial word vectors come from one place: give embeddings= or encoder=, not both.")

    def new_core(self, embedding_size: int, side_size: int, *, generator: torch.Generator | None = None) -> nn.Module:
        """A new network: query (rows, embedding), item (rows, embedding), side (rows, side) -> scores (rows,).

        Settings that a model adds to the shared ones are settings of its network.

        Parameters
        ----------
        embedding_size
            Size of the vectors of query and item.
        side_size
            Size of the vector of side information.
        generator
            Where initial weights are drawn from; None: from torch's global generator.
        """
        shared = set(setting_names(TextAndSideModel))
        core_settings = {name: getattr(self, name) for name in setting_names(type(self)) if name not in shared}
        return self.core(
            embedding_size, side_size, hidden=self.hidden, dropout=self.dropout, generator=generator, **core_settings
        )

    def fit_inputs(self, train: RankingDataset, *, scaling: str, device: str) -> MatchInputs:
        return MatchInputs.fit(
            train,
            ngrams=self.ngrams,
            min_users=self.min_users,
            num_buckets=self.num_buckets,
            embedding_size=self.embedding_size,
            embeddings=self.embeddings,
            encoder=self.encoder,
            max_tokens=self.max_tokens,
        )

    def restore_inputs(self, files: Mapping[str, bytes], *, scaling: str, num_features: int) -> MatchInputs:
        return MatchInputs.restore(files, ngrams=self.ngrams, num_buckets=self.num_buckets, max_tokens=self.max_tokens)

    def new_network(self, inputs: MatchInputs, *, generator: torch.Generator | None = None) -> TextAndSide:
        side_size = inputs.num_numbers + len(inputs.num_categories) * self.category_size
        return TextAndSide(
            self.new_core(inputs.vector_size, side_size, generator=generator),
            inputs.word_vectors(generator),
            inputs.num_categories,
            self.category_size,
            num_numbers=inputs.num_numbers,
            generator=generator,
        )
