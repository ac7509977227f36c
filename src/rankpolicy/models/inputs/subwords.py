"""Texts as token numbers of a pretrained language model that is trained with the ranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.pretrained import CONFIG, TOKENIZER, PretrainedEncoder
from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable
from rankpolicy.models.inputs.pairs import ENCODER_FOLDER, encoder_in, pairs_read_apart, saved_encoder


@dataclass(frozen=True, slots=True, eq=False)
class SubwordInputs:
    """Token numbers of query and item; the language model itself is part of the network."""

    encoder: PretrainedEncoder
    max_tokens: int

    @classmethod
    def from_folder(cls, folder: str | None, *, max_tokens: int) -> SubwordInputs:
        """Read the language model in a folder."""
        return cls(encoder_in(folder), max_tokens)

    @classmethod
    def restore(cls, files: Mapping[str, bytes], *, max_tokens: int) -> SubwordInputs:
        """The configuration and tokenizer that ``files`` saved."""
        return cls(saved_encoder(files), max_tokens)

    @property
    def needs_queries(self) -> bool:
        """Texts of an item are read by themselves."""
        return False

    def files(self) -> dict[str, bytes]:
        """Configuration and tokenizer, as files to save; the trained weights are saved with the network."""
        return {ENCODER_FOLDER + name: self.encoder.files[name] for name in (CONFIG, TOKENIZER)}

    def read(self, dataset: RankingDataset) -> TextPairs:
        """One pair of texts per item, as token numbers."""

        def table(texts: Sequence[str]) -> TokenTable:
            # Half of what the language model can read: query and item may be read as one text.
            longest = min(self.max_tokens, self.encoder.max_positions // 2)
            return TokenTable.of(self.encoder.token_numbers(texts, max_tokens=longest))

        return pairs_read_apart(dataset, table)
