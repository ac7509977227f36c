"""MCAN: a network that matches two texts and gives every word four kinds of attention as additional inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.text_pairs import Padded, PaddedPairs, TextPairs
from rankpolicy.declarations.settings import ReadWhen, frozen_settings, setting
from rankpolicy.models import layers
from rankpolicy.models.highway import HighwayLayer, HighwayNetwork, check_equal_widths
from rankpolicy.models.inputs.words import WordInputs
from rankpolicy.models.layers import ByteDropout, joined_pair, masked_max, masked_mean, run_lstm
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.model import (
    Model,
    dropout_after_projection,
    dropout_rate,
    hidden_layers,
    longest_text,
    recurrent_width,
)

NUM_CASTS = 4  # max, mean, alignment, intra
HINTS_OF_A_CAST = 3  # of the concatenation, the product and the difference


class SumCompression(nn.Module):
    """The sum of the components, one of three ways to turn a vector into one number (F_c of Tay et al. 2018, section 3.3)."""

    def __init__(self, width: int, generator: torch.Generator | None = None) -> None:
        super().__init__()

    def forward(self, vectors: Tensor) -> Tensor:
        """(..., width) -> (...)"""
        return vectors.sum(-1)


class NeuralCompression(nn.Module):
    """relu(w . x + b)."""

    def __init__(self, width: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.linear = layers.linear(width, 1, generator=generator)

    def forward(self, vectors: Tensor) -> Tensor:
        """(..., width) -> (...)"""
        return torch.relu(self.linear(vectors)).squeeze(-1)


class FactorizationCompression(nn.Module):
    """A factorization machine: w0 + w . x + sum_{i < j} <v_i, v_j> x_i x_j.

    The last sum is 1/2 sum_f [(sum_i v_if x_i)^2 - sum_i v_if^2 x_i^2], which takes width x factors steps.
    """

    def __init__(self, width: int, generator: torch.Generator | None = None, *, num_factors: int = 10) -> None:
        super().__init__()
        self.linear = layers.linear(width, 1, generator=generator)
        self.factors = nn.Parameter(torch.randn(width, num_factors, generator=generator) * 0.01)

    def forward(self, vectors: Tensor) -> Tensor:
        """(..., width) -> (...)"""
        crossed = (vectors @ self.factors).square() - vectors.square() @ self.factors.square()
        value: Tensor = self.linear(vectors).squeeze(-1) + crossed.sum(-1) / 2
        return value


COMPRESSIONS: dict[str, Callable[[int, torch.Generator | None], nn.Module]] = {
    "sum": SumCompression,
    "neural": NeuralCompression,
    "factorization": FactorizationCompression,
}


class Cast(nn.Module):
    """Three numbers per word x and its attended vector x': F_c([x'; x]), F_c(x' * x), F_c(x' - x), each F_c with its own weights."""

    def __init__(self, size: int, compression: str, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        compress = COMPRESSIONS[compression]
        self.both, self.product = compress(2 * size, generator), compress(size, generator)
        self.difference = compress(size, generator)

    def forward(self, attended: Tensor, words: Tensor) -> Tensor:
        """(..., size) twice -> (..., 3)"""
        hints = (
            self.both(torch.cat([attended, words], -1)),
            self.product(attended * words),
            self.difference(attended - words),
        )
        return torch.stack(hints, -1)


class MCANNetwork(nn.Module):
    """Multi-cast attention network (Tay et al. 2018) with BanditRank's head (Gampa & Fujita 2019, section 5.1.2).

    Words are fixed vectors, encoded by a highway layer. With S_ij = F(q_i) . F(a_j), F(x) = relu(W x), four attentions give every word
    x_i an attended vector: its own text pooled by softmax_i(max_j S_ij); pooled by softmax_i(mean_j S_ij); the words of the other text
    aligned to it, sum_j softmax_j(S_ij) y_j; the words of its own text, sum_j softmax_j((M x_i + m) . x_j) x_j. Each is cast into three
    numbers. Words with their twelve hints go through an LSTM, then [mean; max] over words; the vectors
    of the two texts are joined as [h_q; h_a; h_q * h_a; h_q - h_a] for a highway network or, with the head "plain", for relu layers.
    """

    reads_padded_pairs: ClassVar[bool] = True  # without a look at the device, so that a CUDA graph can hold it

    def __init__(
        self,
        word_vectors: Tensor,  # (numbers of the vocabulary, size)
        *,
        recurrent: int = 300,
        hidden: tuple[int, ...] = (200, 200),
        compression: str = "sum",
        dropout: float = 0.0,
        head: str = "highway",
        drops_projection: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        size = word_vectors.shape[1]
        self.words = nn.Embedding.from_pretrained(word_vectors, freeze=True, padding_idx=0)
        self.encoder = HighwayLayer(size, generator=generator)
        self.cross = layers.linear(size, size, generator=generator)
        self.intra = layers.linear(size, size, generator=generator)
        self.casts = nn.ModuleList(Cast(size, compression, generator=generator) for _ in range(NUM_CASTS))
        self.lstm = layers.lstm(size + NUM_CASTS * HINTS_OF_A_CAST, recurrent, generator=generator)
        self.dropout = ByteDropout(dropout)
        shape: dict[str, Any] = {"hidden": hidden, "dropout": dropout, "generator": generator}
        self.head: nn.Module = (
            HighwayNetwork(4 * 2 * recurrent, drops_projection=drops_projection, **shape)
            if head == "highway"
            else MLPNetwork(4 * 2 * recurrent, **shape)
        )

    def forward(self, pairs: TextPairs | PaddedPairs) -> Tensor:
        """pairs -> scores (pairs,)"""
        queries, query_mask, query_intra = self._encoded(pairs.padded_queries())
        items, item_mask, item_intra = self._encoded(pairs.padded_items())
        affinity = torch.relu(self.cross(queries)) @ torch.relu(self.cross(items)).mT
        query = self._summary(queries, items, query_mask, item_mask, affinity, query_intra)
        item = self._summary(items, queries, item_mask, query_mask, affinity.mT, item_intra)
        scores: Tensor = self.head(joined_pair(query, item))
        return scores

    def _encoded(self, texts: Padded) -> tuple[Tensor, Tensor, Tensor]:
        """Words (pair, word, size), their mask, and their intra-attention; each distinct text is encoded once."""
        words = self.dropout(self.encoder(self.words(texts.tokens)))
        similarity = self.intra(words) @ words.mT
        attended = _softmax(similarity, texts.mask[:, None, :]) @ words
        return words[texts.of_pair], texts.mask[texts.of_pair], attended[texts.of_pair]

    def _summary(
        self, words: Tensor, other_words: Tensor, mask: Tensor, other_mask: Tensor, affinity: Tensor, intra: Tensor
    ) -> Tensor:
        """One text of each pair as a vector (pair, 2 * recurrent); affinity is (pair, word, other word)."""
        pair_mask = other_mask[:, None, :]
        highest = affinity.masked_fill(~pair_mask, -torch.inf).amax(2)
        average = affinity.masked_fill(~pair_mask, 0.0).sum(2) / other_mask.sum(1, keepdim=True)
        attended = (
            (_softmax(highest, mask)[:, None, :] @ words).expand_as(words),
            (_softmax(average, mask)[:, None, :] @ words).expand_as(words),
            _softmax(affinity, pair_mask) @ other_words,
            intra,
        )
        hints = [cast(vectors, words) for cast, vectors in zip(self.casts, attended, strict=True)]
        states = self.dropout(run_lstm(self.lstm, torch.cat([words, *hints], -1), mask))
        return torch.cat([masked_mean(states, mask), masked_max(states, mask)], -1)


def _softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis: masked cells get 0; rows of padding only are uniform, and masked by the caller."""
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1)


@final
@frozen_settings
class MCAN(Model):
    """A multi-cast attention network over the words of query and item (Tay et al. 2018), for texts such as questions and answers."""

    name: ClassVar[str] = "mcan"
    reads: ClassVar[Literal["features", "texts"]] = "texts"

    recurrent: int = recurrent_width()
    hidden: tuple[int, ...] = hidden_layers(
        (64, 64), "Width of each layer of the network at the end; those of a highway network must be equal."
    )
    head: str = setting(
        "highway", """The network at the end: "highway", or "plain" relu layers.""", choices=("highway", "plain")
    )
    compression: str = setting(
        "sum",
        """How an attended vector becomes one number: its sum, a relu layer ("neural") or a factorization machine.""",
        choices=COMPRESSIONS,
    )
    dropout: float = dropout_rate(0.3)
    dropout_after_projection: bool = dropout_after_projection(
        read_when=ReadWhen(condition='head is "highway"', holds=lambda model: model.head == "highway")
    )
    embeddings: str | None = setting(None, "File of word vectors in GloVe's text format; None draws random ones.")
    embedding_size: int = setting(
        100,
        "Size of random word vectors.",
        at_least=1,
        read_when=ReadWhen(condition="embeddings is None", holds=lambda model: model.embeddings is None),
    )
    min_count: int = setting(
        1, "How often a word must occur in the training texts to get a vector; rarer words share one.", at_least=1
    )
    max_tokens: int = longest_text(3)

    def _check_together(self) -> None:
        if self.head == "highway":
            check_equal_widths(self.hidden)

    def fit_inputs(self, train: RankingDataset, *, scaling: str, device: str) -> WordInputs:
        return WordInputs.fit(
            train,
            embeddings=self.embeddings,
            embedding_size=self.embedding_size,
            min_count=self.min_count,
            max_tokens=self.max_tokens,
        )

    def restore_inputs(self, files: Mapping[str, bytes], *, scaling: str, num_features: int) -> WordInputs:
        return WordInputs.restore(files, max_tokens=self.max_tokens)

    def new_network(self, inputs: WordInputs, *, generator: torch.Generator | None = None) -> MCANNetwork:
        return MCANNetwork(
            inputs.word_vectors(generator),
            recurrent=self.recurrent,
            hidden=self.hidden,
            compression=self.compression,
            dropout=self.dropout,
            head=self.head,
            drops_projection=self.dropout_after_projection,
            generator=generator,
        )
