"""Texts as token features of a pretrained language model that is not trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.pretrained import PretrainedEncoder
from rankpolicy.data.texts.text_pairs import TextPairs
from rankpolicy.data.texts.token_features import TextFeatures
from rankpolicy.models.inputs.pairs import ENCODER_FOLDER, encoder_in, pairs_read_apart, saved_encoder, texts_of


@dataclass(frozen=True, slots=True, eq=False)
class TokenFeatureInputs:
    """Token features of query and item, read apart or together; the language model is saved with the ranker."""

    features: TextFeatures
    reads_together: bool

    @classmethod
    def from_folder(
        cls,
        folder: str | None,
        *,
        reads_together: bool,
        num_layers: int,
        cache: str | None,
        max_tokens: int,
        device: str,
    ) -> TokenFeatureInputs:
        """Read the language model in a folder."""
        return cls._of(encoder_in(folder), reads_together, num_layers, cache, max_tokens, device)

    @classmethod
    def restore(
        cls,
        files: Mapping[str, bytes],
        *,
        reads_together: bool,
        num_layers: int,
        cache: str | None,
        max_tokens: int,
    ) -> TokenFeatureInputs:
        """The language model that ``files`` saved."""
        return cls._of(saved_encoder(files), reads_together, num_layers, cache, max_tokens, "cpu")

    @classmethod
    def _of(
        cls,
        encoder: PretrainedEncoder,
        reads_together: bool,
        num_layers: int,
        cache: str | None,
        max_tokens: int,
        device: str,
    ) -> TokenFeatureInputs:
        features = TextFeatures(encoder, num_layers=num_layers, max_tokens=max_tokens, cache=cache, device=device)
        return cls(features, reads_together)

    @property
    def needs_queries(self) -> bool:
        """Texts of an item are read by themselves."""
        return False

    def files(self) -> dict[str, bytes]:
        """The language model, as files to save."""
        return {ENCODER_FOLDER + name: content for name, content in self.features.encoder.files.items()}

    def read(self, dataset: RankingDataset) -> TextPairs:
        """One pair of texts per item, as token features."""
        if not self.reads_together:
            return pairs_read_apart(dataset, self.features.of)
        texts = texts_of(dataset)
        queries = dataset.query_numbers
        read = [(texts.queries[query], texts.item(item)) for item, query in enumerate(queries)]
        rows = torch.arange(dataset.num_items)
        return TextPairs(None, self.features.of(read), torch.from_numpy(queries), rows)
