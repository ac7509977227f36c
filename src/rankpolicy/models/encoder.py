"""A pretrained language model that is trained further to score pairs of texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, final

import torch
from torch import Tensor, nn

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.text_pairs import TextPairs
from rankpolicy.declarations.settings import ReadWhen, frozen_settings, setting
from rankpolicy.models.inputs.pretrained_texts import SubwordInputs, encoder_in, saved_encoder
from rankpolicy.models.layers import ByteDropout, RandomModule, global_generator_seeded_by, masked_mean
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.model import Model, dropout_rate, encoder_folder, hidden_layers, longest_text

ENCODINGS = ("apart", "together", "both")
_TEXTS_AT_A_TIME = 64
_SHARPNESS = 10.0  # cosines of a sentence encoder lie within a few tenths; scores should lie within a few units


class FineTunedEncoder(RandomModule):
    """Scores from mean-pooled token states of a language model all of whose weights are trained.

    - ``apart``: score = scale * cos(mean of the query's states, mean of the item's) + shift, scale and shift learned;
    - ``together``: one tanh layer over the mean of the states of query and item read as one text;
    - ``both``: the sum of these; the second part starts at 0, so that training starts from the cosine.
    """

    def __init__(
        self,
        encoder: nn.Module,
        width: int,
        *,
        encoding: str = "both",
        hidden: tuple[int, ...] = (256,),
        dropout: float = 0.0,
        has_segments: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.encoding = encoding
        self.has_segments = has_segments
        self.dropout = ByteDropout(dropout)
        if encoding != "together":
            self.scale = nn.Parameter(torch.tensor(_SHARPNESS))
            self.shift = nn.Parameter(torch.tensor(-_SHARPNESS / 2))
        if encoding != "apart":
            self.head = MLPNetwork(width, hidden=hidden, dropout=dropout, activation=nn.Tanh, generator=generator)
        if encoding == "both":
            nn.init.zeros_(self.head.output.weight)
            nn.init.zeros_(self.head.output.bias)

    def forward(self, pairs: TextPairs) -> Tensor:
        """pairs -> scores (pairs,)"""
        # The dropout within the language model draws from torch's global generator.
        with global_generator_seeded_by(self.generator if self.training else None):
            if self.encoding == "apart":
                return self._cosines(pairs)
            if self.encoding == "together":
                return self._joint_scores(pairs)
            return self._cosines(pairs) + self._joint_scores(pairs)

    def _cosines(self, pairs: TextPairs) -> Tensor:
        query, item = (
            nn.functional.normalize(self._means(texts.tokens, texts.mask), dim=-1)[texts.of_pair]
            for texts in (pairs.padded_queries(), pairs.padded_items())
        )
        return self.scale * (query * item).sum(-1) + self.shift

    def _joint_scores(self, pairs: TextPairs) -> Tensor:
        queries, items = pairs.padded_queries(), pairs.padded_items()
        # An item's text alone starts with the mark that opens a text; behind a query there is none.
        tokens = torch.cat([queries.tokens[queries.of_pair], items.tokens[items.of_pair][:, 1:]], 1)
        mask = torch.cat([queries.mask[queries.of_pair], items.mask[items.of_pair][:, 1:]], 1)
        segments = torch.zeros_like(tokens)
        segments[:, queries.tokens.shape[1] :] = 1
        # Real tokens first: language models count positions from the start.
        order = mask.int().argsort(stable=True, dim=1, descending=True)[:, : int(mask.sum(1).max())]
        tokens, mask, segments = (values.gather(1, order) for values in (tokens, mask, segments))
        scores: Tensor = self.head(self.dropout(self._means(tokens, mask, segments)))
        return scores

    def _means(self, tokens: Tensor, mask: Tensor, segments: Tensor | None = None) -> Tensor:
        """Mean states (text, width) of padded tokens. Texts of similar length are read together, to save work on padding."""
        lengths = mask.sum(1)
        order = lengths.argsort()
        means = []
        for texts in order.split(_TEXTS_AT_A_TIME):
            longest = int(lengths[texts[-1]])
            inputs = {"input_ids": tokens[texts, :longest], "attention_mask": mask[texts, :longest].long()}
            if self.has_segments and segments is not None:
                inputs["token_type_ids"] = segments[texts, :longest]
            means.append(masked_mean(self.encoder(**inputs).last_hidden_state, mask[texts, :longest]))
        return torch.cat(means)[order.argsort()]


_READS_TOGETHER = ReadWhen(
    condition='encoding is "together" or "both"', holds=lambda model: model.encoding in ("together", "both")
)


@final
@frozen_settings
class Encoder(Model):
    """A pretrained language model whose weights are all trained further, to score pairs of texts.

    encoding "apart" scores by the cosine of the mean token states of query and item; "together" by a tanh layer over the mean state of both
    read as one text; "both" adds the two.
    """

    name: ClassVar[str] = "encoder"
    reads: ClassVar[Literal["features", "texts"]] = "texts"

    encoder: str | None = encoder_folder()
    encoding: str = setting(
        "apart",
        """How the language model reads query and item: "apart" (fast, each text once), "together" (as one text per pair) or "both".""",
        choices=ENCODINGS,
    )
    hidden: tuple[int, ...] = hidden_layers(
        (64, 64), "Width of each tanh layer after the language model.", read_when=_READS_TOGETHER
    )
    dropout: float = dropout_rate(0.3, read_when=_READS_TOGETHER)
    max_tokens: int = longest_text(3)

    def fit_inputs(self, train: RankingDataset, *, scaling: str, device: str) -> SubwordInputs:
        return SubwordInputs(encoder_in(self.encoder), self.max_tokens)

    def restore_inputs(self, files: Mapping[str, bytes], *, scaling: str, num_features: int) -> SubwordInputs:
        return SubwordInputs(saved_encoder(files), self.max_tokens)

    def new_network(self, inputs: SubwordInputs, *, generator: torch.Generator | None = None) -> FineTunedEncoder:
        network = inputs.encoder.new_network(with_weights="model.safetensors" in inputs.encoder.files)
        return FineTunedEncoder(
            network,
            inputs.encoder.width,
            encoding=self.encoding,
            hidden=self.hidden,
            dropout=self.dropout,
            has_segments=inputs.encoder.has_segments(),
            generator=generator,
        )
