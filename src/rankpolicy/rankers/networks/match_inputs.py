"""What networks of texts and side columns read: words and letter n-grams, numbers and categories."""

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
from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable
from rankpolicy.rankers.networks.network_settings import NetworkSettings
from rankpolicy.rankers.networks.text_inputs import random_vectors
from rankpolicy.types import RankPolicyError

_FILE = "match_inputs.json"
_SCALE_WITHOUT_VECTOR = (
    0.1  # of tokens that a file of vectors lacks: many n-grams must not drown the words that have one
)


@dataclass(frozen=True, slots=True, eq=False)
class MatchInputs:
    """Texts as numbers of a vocabulary and side columns as tensors; of the training data only what ``min_users`` users saw is kept."""

    vocabulary: HashingVocabulary
    side: SideEncoding
    max_tokens: int
    vector_size: int
    file_vectors: Tensor | None = field(default=None, repr=False)  # (numbers, vector_size), only when fitted

    @classmethod
    def fit(cls, settings: NetworkSettings, train: RankingDataset, device: str) -> MatchInputs:
        for name in ("max_tokens", "embedding_size", "category_size"):
            if getattr(settings, name) < 1:
                raise RankPolicyError(f"{name} must be at least 1; got {getattr(settings, name)}.")
        if settings.embeddings is not None and settings.encoder is not None:
            raise RankPolicyError("initial word vectors come from one place: give embeddings= or encoder=, not both.")
        vocabulary = HashingVocabulary.of(
            train, ngrams=settings.ngrams, min_users=settings.min_users, num_buckets=settings.num_buckets
        )
        if len(vocabulary) == 1:
            warnings.warn(
                f"no word or n-gram of the training data was seen by {settings.min_users} users, so texts tell nothing: lower min_users.",
                stacklevel=2,
            )
        users = None if train.shown is None or train.shown.users is None else train.shown.users[train.query_of_item]
        side = SideEncoding.fit(train.side, users, min_users=settings.min_users)
        vectors = _file_vectors(settings, vocabulary)
        size = settings.embedding_size if vectors is None else vectors.shape[1]
        return cls(vocabulary, side, settings.max_tokens, size, vectors)

    @classmethod
    def restore(cls, settings: NetworkSettings, files: Mapping[str, bytes]) -> MatchInputs:
        saved = json.loads(files[_FILE])
        vocabulary = HashingVocabulary(
            words=tuple(saved["words"]),
            ngrams=tuple(saved["ngrams"]),
            lengths=tuple(settings.ngrams),
            num_buckets=settings.num_buckets,
        )
        return cls(vocabulary, SideEncoding.from_document(saved["side"]), settings.max_tokens, saved["vector_size"])

    def files(self) -> dict[str, bytes]:
        saved = {
            "words": self.vocabulary.words,
            "ngrams": self.vocabulary.ngrams,
            "vector_size": self.vector_size,
            "side": self.side.document(),
        }
        return {_FILE: json.dumps(saved, ensure_ascii=False).encode()}

    @property
    def num_numbers(self) -> int:
        return self.side.num_numbers

    @property
    def num_categories(self) -> list[int]:
        """How many codes each category has."""
        return [column.num_codes for column in self.side.categories]

    def word_vectors(self) -> Tensor:
        """Initial vectors (numbers, size): from a file or a pretrained model, or drawn from the standard normal distribution."""
        return (
            random_vectors(len(self.vocabulary), self.vector_size)
            if self.file_vectors is None
            else self.file_vectors.clone()
        )

    def pairs(self, dataset: RankingDataset) -> TextPairs:
        assert dataset.texts is not None, "checked when the dataset came in"
        texts = dataset.texts
        # Logs ask the same again and again: each distinct query is read once.
        index_of = {text: index for index, text in enumerate(dict.fromkeys(texts.queries))}
        text_of_query = np.array([index_of[text] for text in texts.queries], np.int64)
        used, item_of_pair = np.unique(texts.of_item, return_inverse=True)
        return TextPairs(
            self._table(list(index_of)),
            self._table([texts.distinct[index] for index in used]),
            torch.from_numpy(text_of_query[dataset.query_of_item]),
            torch.from_numpy(item_of_pair),
            self.side.tensors(dataset.side, dataset.num_items),
        )

    def _table(self, texts: Sequence[str]) -> TokenTable:
        return TokenTable.of(self.vocabulary.encode_all(texts, max_tokens=self.max_tokens))


def _file_vectors(settings: NetworkSettings, vocabulary: HashingVocabulary) -> Tensor | None:
    """Vectors (numbers, size) whose words have those of a file or of a pretrained model; the rest is small and random."""
    if settings.embeddings is not None:
        given = read_glove(settings.embeddings)
        rows = given.rows_for(vocabulary)
        has_vector = np.zeros(len(rows), bool)
        has_vector[[vocabulary.number_of[word] for word in given.words if word in vocabulary.number_of]] = True
        rows[~has_vector] *= _SCALE_WITHOUT_VECTOR
        return torch.from_numpy(rows)
    if settings.encoder is not None:
        return _encoder_vectors(PretrainedEncoder.from_folder(settings.encoder), vocabulary)
    return None


def _encoder_vectors(encoder: PretrainedEncoder, vocabulary: HashingVocabulary) -> Tensor:
    """A word has the mean of the vectors that a pretrained model reads its pieces with."""
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
