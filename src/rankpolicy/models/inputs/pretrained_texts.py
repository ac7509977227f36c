"""Texts as a pretrained language model reads them: token numbers where it is trained with the ranker, token features where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.pretrained import CONFIG, TOKENIZER, PretrainedEncoder
from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable, pairs_read_apart, texts_of
from rankpolicy.data.texts.token_features import TextFeatures
from rankpolicy.types import RankPolicyError

_FOLDER = "encoder/"  # of the language model within a model file


@dataclass(frozen=True, slots=True, eq=False)
class SubwordInputs:
    """Token numbers of query and item; the language model itself is part of the network."""

    encoder: PretrainedEncoder
    max_tokens: int

    @property
    def needs_queries(self) -> bool:
        """Texts of an item are read by themselves."""
        return False

    def files(self) -> dict[str, bytes]:
        """Configuration and tokenizer, as files to save; the trained weights are saved with the network."""
        return {_FOLDER + name: self.encoder.files[name] for name in (CONFIG, TOKENIZER)}

    def read(self, dataset: RankingDataset) -> TextPairs:
        """One pair of texts per item, as token numbers."""

        def table(texts: Sequence[str]) -> TokenTable:
            # Half of what the language model can read: query and item may be read as one text.
            longest = min(self.max_tokens, self.encoder.max_positions // 2)
            return TokenTable.of(self.encoder.token_numbers(texts, max_tokens=longest))

        return pairs_read_apart(dataset, table)


@dataclass(frozen=True, slots=True, eq=False)
class TokenFeatureInputs:
    """Token features of query and item, read apart or together; the language model is saved with the ranker."""

    features: TextFeatures
    reads_together: bool

    @property
    def needs_queries(self) -> bool:
        """Texts of an item are read by themselves."""
        return False

    def files(self) -> dict[str, bytes]:
        """The language model, as files to save."""
        return {_FOLDER + name: content for name, content in self.features.encoder.files.items()}

    def read(self, dataset: RankingDataset) -> TextPairs:
        """One pair of texts per item, as token features."""
        if not self.reads_together:
            return pairs_read_apart(dataset, self.features.of)
        texts = texts_of(dataset)
        queries = dataset.query_numbers
        read = [(texts.queries[query], texts.item(item)) for item, query in enumerate(queries)]
        rows = torch.arange(dataset.num_items)
        return TextPairs(None, self.features.of(read), torch.from_numpy(queries), rows)


def encoder_in(folder: str | None) -> PretrainedEncoder:
    """The pretrained model in a folder."""
    if folder is None:
        raise RankPolicyError(
            "this model needs encoder=, the folder of a Hugging Face model: model=rp.models.Encoder(encoder='folder')."
        )
    return PretrainedEncoder.from_folder(folder)


def saved_encoder(files: Mapping[str, bytes]) -> PretrainedEncoder:
    """The pretrained model in a model file."""
    return PretrainedEncoder({name.removeprefix(_FOLDER): files[name] for name in files if name.startswith(_FOLDER)})
