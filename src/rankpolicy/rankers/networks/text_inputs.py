"""From the texts of a dataset to what a text network takes; saved with the ranker, so that a new process reads texts the same way."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.glove import read_glove
from rankpolicy.data.texts.pretrained import CONFIG, TOKENIZER, PretrainedEncoder
from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable
from rankpolicy.data.texts.texts import Texts
from rankpolicy.data.texts.token_features import TextFeatures
from rankpolicy.data.texts.vocabulary import Vocabulary
from rankpolicy.rankers.networks.network_settings import NetworkSettings
from rankpolicy.types import RankPolicyError

_VOCABULARY = "vocabulary.json"
_FOLDER = "encoder/"


class TextInputs(Protocol):
    """A way to read texts."""

    @classmethod
    def fit(cls, settings: NetworkSettings, train: RankingDataset, device: str) -> Self:
        """Ready to read, after a look at the training data."""
        ...

    @classmethod
    def restore(cls, settings: NetworkSettings, files: Mapping[str, bytes]) -> Self:
        """What ``files`` saved."""
        ...

    def files(self) -> dict[str, bytes]:
        """What has to be saved beside the network's weights."""
        ...

    def pairs(self, dataset: RankingDataset) -> TextPairs:
        """The pairs of a dataset with texts, on the CPU, a row an item."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class WordInputs:
    """Texts as numbers of a vocabulary: the words of the training texts and, with word vectors from a file, all words of that file."""

    vocabulary: Vocabulary
    max_tokens: int
    vector_size: int
    file_vectors: Tensor | None = field(default=None, repr=False)  # (numbers, vector_size), only when fitted

    @classmethod
    def fit(cls, settings: NetworkSettings, train: RankingDataset, device: str) -> WordInputs:
        given_texts = _texts(train)
        texts = [*given_texts.queries, *(given_texts.distinct[index] for index in np.unique(given_texts.of_item))]
        if settings.embeddings is None:
            if settings.embedding_size < 1:
                raise RankPolicyError(f"embedding_size must be at least 1; got {settings.embedding_size}.")
            vocabulary = Vocabulary.of(texts, min_count=settings.min_count)
            return cls(vocabulary, _checked_length(settings), settings.embedding_size)
        given = read_glove(settings.embeddings)
        vocabulary = Vocabulary.of(texts, min_count=settings.min_count, also=given.words)
        vectors = torch.from_numpy(given.rows_for(vocabulary))
        return cls(vocabulary, _checked_length(settings), vectors.shape[1], vectors)

    @classmethod
    def restore(cls, settings: NetworkSettings, files: Mapping[str, bytes]) -> WordInputs:
        saved = json.loads(files[_VOCABULARY])
        return cls(Vocabulary(tuple(saved["words"])), settings.max_tokens, saved["vector_size"])

    def files(self) -> dict[str, bytes]:
        saved = {"words": self.vocabulary.words, "vector_size": self.vector_size}
        return {_VOCABULARY: json.dumps(saved, ensure_ascii=False).encode()}

    def word_vectors(self) -> Tensor:
        """Initial vectors (numbers, size): those of the file, or drawn from the standard normal distribution."""
        return (
            random_vectors(len(self.vocabulary), self.vector_size)
            if self.file_vectors is None
            else self.file_vectors.clone()
        )

    def pairs(self, dataset: RankingDataset) -> TextPairs:
        def table(texts: Sequence[str]) -> TokenTable:
            return TokenTable.of([self.vocabulary.encode(text, max_tokens=self.max_tokens) for text in texts])

        return _pairs_read_apart(dataset, table)


@dataclass(frozen=True, slots=True, eq=False)
class TokenFeatureInputs:
    """Texts as token features of a pretrained model that stays as it is; the model is saved too."""

    features: TextFeatures
    reads_together: bool

    @classmethod
    def fit(cls, settings: NetworkSettings, train: RankingDataset, device: str) -> TokenFeatureInputs:
        return cls._of(settings, _encoder(settings), device)

    @classmethod
    def restore(cls, settings: NetworkSettings, files: Mapping[str, bytes]) -> TokenFeatureInputs:
        return cls._of(settings, _saved_encoder(files), "cpu")

    @classmethod
    def _of(cls, settings: NetworkSettings, encoder: PretrainedEncoder, device: str) -> TokenFeatureInputs:
        if settings.encoding not in ("apart", "together"):
            raise RankPolicyError(f"encoding must be 'apart' or 'together' for bilstm; got {settings.encoding!r}.")
        features = TextFeatures(
            encoder,
            num_layers=settings.feature_layers,
            max_tokens=_checked_length(settings),
            cache=settings.feature_cache,
            device=device,
        )
        return cls(features, settings.encoding == "together")

    def files(self) -> dict[str, bytes]:
        return {_FOLDER + name: content for name, content in self.features.encoder.files.items()}

    def pairs(self, dataset: RankingDataset) -> TextPairs:
        if not self.reads_together:
            return _pairs_read_apart(dataset, self.features.of)
        texts = _texts(dataset)
        queries = dataset.query_of_item
        read = [(texts.queries[query], texts.item(item)) for item, query in enumerate(queries)]
        rows = torch.arange(dataset.num_items)
        return TextPairs(None, self.features.of(read), torch.from_numpy(queries), rows)


@dataclass(frozen=True, slots=True, eq=False)
class SubwordInputs:
    """Texts as token numbers of a pretrained model, which is part of the network and trained with it."""

    encoder: PretrainedEncoder
    max_tokens: int

    @classmethod
    def fit(cls, settings: NetworkSettings, train: RankingDataset, device: str) -> SubwordInputs:
        return cls(_encoder(settings), _checked_length(settings))

    @classmethod
    def restore(cls, settings: NetworkSettings, files: Mapping[str, bytes]) -> SubwordInputs:
        return cls(_saved_encoder(files), settings.max_tokens)

    def files(self) -> dict[str, bytes]:
        # The weights have changed in training: they are the network's.
        return {_FOLDER + name: self.encoder.files[name] for name in (CONFIG, TOKENIZER)}

    def pairs(self, dataset: RankingDataset) -> TextPairs:
        def table(texts: Sequence[str]) -> TokenTable:
            # Half of what the model can read: query and item may be read as one text.
            longest = min(self.max_tokens, self.encoder.max_positions // 2)
            return TokenTable.of(self.encoder.token_numbers(texts, max_tokens=longest))

        return _pairs_read_apart(dataset, table)


def random_vectors(count: int, size: int) -> Tensor:
    """Initial vectors (count, size) from the standard normal distribution; that of padding, the first, is 0."""
    vectors = torch.randn(count, size)
    vectors[0] = 0
    return vectors


def _pairs_read_apart(dataset: RankingDataset, table: Callable[[Sequence[str]], TokenTable]) -> TextPairs:
    texts = _texts(dataset)
    used, item_of_pair = np.unique(texts.of_item, return_inverse=True)
    return TextPairs(
        table(texts.queries),
        table([texts.distinct[index] for index in used]),
        torch.from_numpy(dataset.query_of_item),
        torch.from_numpy(item_of_pair),
    )


def _texts(dataset: RankingDataset) -> Texts:
    assert dataset.texts is not None, "checked when the dataset came in"
    return dataset.texts


def _encoder(settings: NetworkSettings) -> PretrainedEncoder:
    if settings.encoder is None:
        raise RankPolicyError(f"model {settings.model!r} needs encoder=, the folder of a Hugging Face model.")
    return PretrainedEncoder.from_folder(settings.encoder)


def _saved_encoder(files: Mapping[str, bytes]) -> PretrainedEncoder:
    return PretrainedEncoder(
        {name.removeprefix(_FOLDER): content for name, content in files.items() if name.startswith(_FOLDER)}
    )


def _checked_length(settings: NetworkSettings) -> int:
    if settings.max_tokens < 3:  # a language model's two marks and a word between
        raise RankPolicyError(f"max_tokens must be at least 3; got {settings.max_tokens}.")
    return settings.max_tokens
