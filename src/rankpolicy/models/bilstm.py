"""A recurrent network over token features of a pretrained language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, final

import torch
from torch import Tensor, nn

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.pretrained import PretrainedEncoder
from rankpolicy.data.texts.text_pairs import Padded, TextPairs
from rankpolicy.data.texts.token_features import TextFeatures
from rankpolicy.declarations.settings import frozen_settings, setting
from rankpolicy.models import layers
from rankpolicy.models.inputs.pretrained_texts import TokenFeatureInputs, encoder_in, saved_encoder
from rankpolicy.models.layers import ByteDropout, joined_pair, masked_mean, run_lstm
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.model import (
    Model,
    dropout_rate,
    encoder_folder,
    hidden_layers,
    longest_text,
    recurrent_width,
)


class BiLSTMNetwork(nn.Module):
    """Two bidirectional LSTM layers, the mean over tokens, one tanh layer, one output (Gampa & Fujita 2019, section 5.2.2).

    If the language model has read query and item as one text, the mean itself enters the tanh layer; if it has read them apart, their
    means are joined as [h_q; h_a; h_q * h_a; h_q - h_a]. Dropout applies to the tokens, between the LSTM layers, and to the means.
    """

    def __init__(
        self,
        num_features: int,
        *,
        recurrent: int = 300,
        hidden: tuple[int, ...] = (256,),
        dropout: float = 0.0,
        reads_together: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.reads_together = reads_together
        # Two modules, because the dropout within a torch LSTM of two layers would draw from torch's global generator.
        self.lower = layers.lstm(num_features, recurrent, bidirectional=True, generator=generator)
        self.upper = layers.lstm(2 * recurrent, recurrent, bidirectional=True, generator=generator)
        self.dropout = ByteDropout(dropout)
        self.head = MLPNetwork(
            2 * recurrent * (1 if reads_together else 4),
            hidden=hidden,
            dropout=dropout,
            activation=nn.Tanh,
            generator=generator,
        )

    def forward(self, pairs: TextPairs) -> Tensor:
        """pairs -> scores (pairs,)"""
        items = self._means(pairs.padded_items())
        read = items if self.reads_together else joined_pair(self._means(pairs.padded_queries()), items)
        scores: Tensor = self.head(read)
        return scores

    def _means(self, texts: Padded) -> Tensor:
        """A vector (pairs, 2 * recurrent) for one side of each pair; each distinct text is read once."""
        states = run_lstm(self.lower, self.dropout(texts.tokens), texts.mask)
        states = run_lstm(self.upper, self.dropout(states), texts.mask)
        means: Tensor = self.dropout(masked_mean(states, texts.mask))
        return means[texts.of_pair]


@final
@frozen_settings
class BiLSTM(Model):
    """A bidirectional LSTM over the token features of a pretrained language model, which itself is not trained (Gampa & Fujita 2019)."""

    name: ClassVar[str] = "bilstm"
    reads: ClassVar[Literal["features", "texts"]] = "texts"

    encoder: str | None = encoder_folder()
    encoding: str = setting(
        "apart",
        """Whether the language model reads query and item "apart", each text once, or "together" as one text per pair, which is slower
        and lets it compare their words.""",
        choices=("apart", "together"),
    )
    feature_layers: int = setting(
        4, "How many of the language model's last layers are read, side by side as the features of a token.", at_least=1
    )
    feature_cache: str | None = setting(
        None, "Folder that keeps token features between runs; None computes them in every run."
    )
    recurrent: int = recurrent_width()
    hidden: tuple[int, ...] = hidden_layers((64, 64), "Width of each tanh layer after the LSTM.")
    dropout: float = dropout_rate(0.3)
    max_tokens: int = longest_text(3)

    def fit_inputs(self, train: RankingDataset, *, scaling: str, device: str) -> TokenFeatureInputs:
        return self._inputs(encoder_in(self.encoder), device)

    def restore_inputs(self, files: Mapping[str, bytes], *, scaling: str, num_features: int) -> TokenFeatureInputs:
        return self._inputs(saved_encoder(files), "cpu")

    def _inputs(self, encoder: PretrainedEncoder, device: str) -> TokenFeatureInputs:
        features = TextFeatures(
            encoder,
            num_layers=self.feature_layers,
            max_tokens=self.max_tokens,
            cache=self.feature_cache,
            device=device,
        )
        return TokenFeatureInputs(features, reads_together=self.encoding == "together")

    def new_network(self, inputs: TokenFeatureInputs, *, generator: torch.Generator | None = None) -> BiLSTMNetwork:
        return BiLSTMNetwork(
            inputs.features.num_features,
            recurrent=self.recurrent,
            hidden=self.hidden,
            dropout=self.dropout,
            reads_together=inputs.reads_together,
            generator=generator,
        )
