"""Texts as words of a vocabulary."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.glove import read_glove
from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable, pairs_read_apart, texts_of
from rankpolicy.data.texts.vocabulary import Vocabulary
from rankpolicy.models import layers

_FILE = "vocabulary.json"


@dataclass(frozen=True, slots=True, eq=False)
class WordInputs:
    """Texts as numbers of a vocabulary: the words of the training texts and, with word vectors from a file, all words of that file."""

    vocabulary: Vocabulary
    max_tokens: int
    vector_size: int
    file_vectors: Tensor | None = field(default=None, repr=False)  # (numbers, vector_size), only when fitted

    @classmethod
    def fit(
        cls, train: RankingDataset, *, embeddings: str | None, embedding_size: int, min_count: int, max_tokens: int
    ) -> WordInputs:
        """Collect the vocabulary of the training texts, and read the word vectors if a file has some."""
        given_texts = texts_of(train)
        texts = [*given_texts.queries, *(given_texts.distinct[index] for index in np.unique(given_texts.of_item))]
        if embeddings is None:
            return cls(Vocabulary.of(texts, min_count=min_count), max_tokens, embedding_size)
        vectors_of_file = read_glove(embeddings)
        vocabulary = Vocabulary.of(texts, min_count=min_count, also=vectors_of_file.words)
        vectors = torch.from_numpy(vectors_of_file.rows_for(vocabulary))
        return cls(vocabulary, max_tokens, vectors.shape[1], vectors)

    @classmethod
    def restore(cls, files: Mapping[str, bytes], *, max_tokens: int) -> WordInputs:
        """The vocabulary that ``files`` saved."""
        saved = json.loads(files[_FILE])
        return cls(Vocabulary(tuple(saved["words"])), max_tokens, saved["vector_size"])

    @property
    def needs_queries(self) -> bool:
        """Texts of an item are read by themselves."""
        return False

    def files(self) -> dict[str, bytes]:
        """What is fitted, as a file to save."""
        saved = {"words": self.vocabulary.words, "vector_size": self.vector_size}
        return {_FILE: json.dumps(saved, ensure_ascii=False).encode()}

    def word_vectors(self, generator: torch.Generator | None = None) -> Tensor:
        """Initial vectors (numbers, size): those of the file, or drawn from the standard normal distribution."""
        if self.file_vectors is not None:
            return self.file_vectors.clone()
        return layers.word_vectors(len(self.vocabulary), self.vector_size, generator=generator)

    def read(self, dataset: RankingDataset) -> TextPairs:
        """One pair of texts per item, as numbers of the vocabulary."""

        def table(texts: Sequence[str]) -> TokenTable:
            return TokenTable.of([self.vocabulary.encode(text, max_tokens=self.max_tokens) for text in texts])

        return pairs_read_apart(dataset, table)
