"""Texts with side columns: words and letter n-grams, numbers and categories."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankpolicy.data.click_table.side_encoding import SideEncoding
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.glove import read_glove
from rankpolicy.data.texts.hashing_vocabulary import HashingVocabulary
from rankpolicy.data.texts.pretrained import PretrainedEncoder
from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable, texts_of
from rankpolicy.models import layers

USUAL_MIN_USERS = 5
_FILE = "match_inputs.json"
# Of tokens without a vector in the file: many n-grams must not drown out the words that have one.
_SCALE_WITHOUT_VECTOR = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class MatchInputs:
    """Texts as numbers of a vocabulary, side columns as tensors; what fewer than ``min_users`` users saw in training is not kept.

    ``min_users`` None stands for 5 where the data tell users, else for 1.
    """

    vocabulary: HashingVocabulary
    side: SideEncoding
    max_tokens: int
    vector_size: int
    file_vectors: Tensor | None = field(default=None, repr=False)  # (numbers, vector_size), only when fitted

    @classmethod
    def fit(
        cls,
        train: RankingDataset,
        *,
        ngrams: tuple[int, ...],
        min_users: int | None,
        num_buckets: int,
        embedding_size: int,
        embeddings: str | None,
        encoder: str | None,
        max_tokens: int,
    ) -> MatchInputs:
        """Collect vocabulary and categories of the training data, and read the word vectors if there are some."""
        users = (
            None
            if train.shown_by_query is None or train.shown_by_query.users is None
            else train.shown_by_query.users[train.query_numbers]
        )
        if min_users is None:
            min_users = 1 if users is None else USUAL_MIN_USERS
        vocabulary = HashingVocabulary.of(train, ngrams=ngrams, min_users=min_users, num_buckets=num_buckets)
        _warn_of_lost_texts(train, vocabulary, min_users)
        side = SideEncoding.fit(train.side_by_query, users, min_users=min_users)
        vectors = _given_vectors(embeddings, encoder, vocabulary)
        return cls(vocabulary, side, max_tokens, embedding_size if vectors is None else vectors.shape[1], vectors)

    @classmethod
    def restore(
        cls, files: Mapping[str, bytes], *, ngrams: tuple[int, ...], num_buckets: int, max_tokens: int
    ) -> MatchInputs:
        """The vocabulary and categories that ``files`` saved."""
        saved = json.loads(files[_FILE])
        vocabulary = HashingVocabulary(
            words=tuple(saved["words"]), ngrams=tuple(saved["ngrams"]), lengths=ngrams, num_buckets=num_buckets
        )
        return cls(vocabulary, SideEncoding.from_document(saved["side"]), max_tokens, saved["vector_size"])

    @property
    def needs_queries(self) -> bool:
        """Texts and side columns of an item are read by themselves."""
        return False

    def files(self) -> dict[str, bytes]:
        """What is fitted, as a file to save."""
        saved = {
            "words": self.vocabulary.words,
            "ngrams": self.vocabulary.ngrams,
            "vector_size": self.vector_size,
            "side": self.side.document(),
        }
        return {_FILE: json.dumps(saved, ensure_ascii=False).encode()}

    @property
    def num_numbers(self) -> int:
        """How many numbers the side columns give."""
        return self.side.num_numbers

    @property
    def num_categories(self) -> list[int]:
        """How many codes each category has."""
        return [column.num_codes for column in self.side.categories]

    def word_vectors(self, generator: torch.Generator | None = None) -> Tensor:
        """Initial vectors (numbers, size): from a file or a pretrained model, or drawn from the standard normal distribution."""
        if self.file_vectors is not None:
            return self.file_vectors.clone()
        return layers.word_vectors(len(self.vocabulary), self.vector_size, generator=generator)

    def read(self, dataset: RankingDataset) -> TextPairs:
        """One pair of texts per item, as numbers of the vocabulary, with its side columns."""
        texts = texts_of(dataset)
        # Logs repeat their queries: each distinct query text is read once.
        index_of = {text: index for index, text in enumerate(dict.fromkeys(texts.queries))}
        text_of_query = np.array([index_of[text] for text in texts.queries], np.int64)
        used, item_of_pair = np.unique(texts.of_item, return_inverse=True)
        return TextPairs(
            self._table(list(index_of)),
            self._table([texts.distinct[index] for index in used]),
            torch.from_numpy(text_of_query[dataset.query_numbers]),
            torch.from_numpy(item_of_pair),
            self.side.tensors(dataset.side_by_query, dataset.num_items),
        )

    def _table(self, texts: Sequence[str]) -> TokenTable:
        return TokenTable.of(self.vocabulary.encode_all(texts, max_tokens=self.max_tokens))


def _warn_of_lost_texts(train: RankingDataset, vocabulary: HashingVocabulary, min_users: int) -> None:
    """Warn where the vocabulary leaves nothing, or nothing of most queries."""
    if min_users == 1:
        return
    if len(vocabulary) == 1:
        warnings.warn(
            f"no word or n-gram of the training data was seen by {min_users} users, so texts hold no information: lower min_users.",
            stacklevel=3,
        )
        return
    queries, counts = np.unique(texts_of(train).queries, return_counts=True)
    has_none = np.array([len(numbers) == 0 for numbers in vocabulary.encode_all(queries.tolist())])
    share = counts[has_none].sum() / counts.sum()
    if share > 0.5:
        warnings.warn(
            f"{100 * share:.0f} % of the training queries have no word or n-gram that {min_users} users have seen, so their texts hold no "
            "information: lower min_users, or train on more data.",
            stacklevel=3,
        )


def _given_vectors(embeddings: str | None, encoder: str | None, vocabulary: HashingVocabulary) -> Tensor | None:
    """Vectors (numbers, size) from a file or a pretrained model; what has none there gets a small random vector."""
    if embeddings is not None:
        vectors_of_file = read_glove(embeddings)
        rows = vectors_of_file.rows_for(vocabulary)
        has_vector = np.zeros(len(rows), bool)
        has_vector[[vocabulary.number_of[word] for word in vectors_of_file.words if word in vocabulary.number_of]] = (
            True
        )
        rows[~has_vector] *= _SCALE_WITHOUT_VECTOR
        return torch.from_numpy(rows)
    if encoder is not None:
        return _encoder_vectors(PretrainedEncoder.from_folder(encoder), vocabulary)
    return None


def _encoder_vectors(encoder: PretrainedEncoder, vocabulary: HashingVocabulary) -> Tensor:
    """The vector of a word is the mean of the input vectors that a pretrained model has for its pieces."""
    network: Any = encoder.new_network(with_weights=True)
    pieces = network.get_input_embeddings().weight.detach()
    marks = set(encoder.token_numbers([""], max_tokens=encoder.max_positions)[0])
    generator = torch.Generator().manual_seed(0)
    scale = _SCALE_WITHOUT_VECTOR * float(pieces.std())
    rows = scale * torch.randn(len(vocabulary), pieces.shape[1], generator=generator)
    rows[0] = 0
    words = list(vocabulary.words)
    for word, numbers in zip(words, encoder.token_numbers(words, max_tokens=encoder.max_positions), strict=True):
        of_word = [number for number in numbers if number not in marks]
        if of_word:
            rows[vocabulary.number_of[word]] = pieces[of_word].mean(0)
    return rows
