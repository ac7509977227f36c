"""MCAN: a matcher of two texts that casts four kinds of attention as hints beside every word."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankpolicy.data.texts.text_pairs import Padded, TextPairs
from rankpolicy.models.compression import COMPRESSIONS
from rankpolicy.models.dropout import ByteDropout
from rankpolicy.models.highway import Highway, HighwayLayer
from rankpolicy.models.recurrent import joined_pair, masked_max, masked_mean, run_lstm
from rankpolicy.types import RankPolicyError, unknown_name

NUM_CASTS = 4  # max, mean, alignment, intra
HINTS_OF_A_CAST = 3  # of the concatenation, the product and the difference


class Cast(nn.Module):
    """Attended vectors beside words as three numbers a word: F_c([x'; x]), F_c(x' * x), F_c(x' - x), each F_c with weights of its own."""

    def __init__(self, size: int, compression: str) -> None:
        super().__init__()
        compress = COMPRESSIONS[compression]
        self.both, self.product, self.difference = compress(2 * size), compress(size), compress(size)

    def forward(self, attended: Tensor, words: Tensor) -> Tensor:
        """(..., size) twice -> (..., 3)"""
        hints = (
            self.both(torch.cat([attended, words], -1)),
            self.product(attended * words),
            self.difference(attended - words),
        )
        return torch.stack(hints, -1)


class MCAN(nn.Module):
    """Multi-cast attention network (Tay et al. 2018) with BanditRank's head (Gampa & Fujita 2019, section 5.1.2).

    Words are fixed vectors, encoded by a highway layer. With S_ij = F(q_i) . F(a_j), F(x) = relu(W x), four attentions give every word
    x_i an attended vector: its own text pooled by softmax_i(max_j S_ij); pooled by softmax_i(mean_j S_ij); the words of the other text
    aligned to it, sum_j softmax_j(S_ij) y_j; the words of its own text, sum_j softmax_j((M x_i + m) . x_j) x_j. Each is cast into three
    numbers. Words with their twelve hints go through an LSTM, then [mean; max] over words; the vectors
    of the two texts are joined as [h_q; h_a; h_q * h_a; h_q - h_a] for a highway network.
    """

    def __init__(
        self,
        word_vectors: Tensor,  # (numbers of the vocabulary, size)
        *,
        recurrent: int = 300,
        hidden: tuple[int, ...] = (200, 200),
        compression: str = "sum",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if compression not in COMPRESSIONS:
            raise RankPolicyError(unknown_name("compression", compression, COMPRESSIONS))
        size = word_vectors.shape[1]
        self.words = nn.Embedding.from_pretrained(word_vectors, freeze=True, padding_idx=0)
        self.encoder = HighwayLayer(size)
        self.cross = nn.Linear(size, size)
        self.intra = nn.Linear(size, size)
        self.casts = nn.ModuleList(Cast(size, compression) for _ in range(NUM_CASTS))
        self.lstm = nn.LSTM(size + NUM_CASTS * HINTS_OF_A_CAST, recurrent, batch_first=True)
        self.dropout = ByteDropout(dropout)
        self.head = Highway(4 * 2 * recurrent, hidden=hidden, dropout=dropout)

    def forward(self, pairs: TextPairs) -> Tensor:
        """pairs -> scores (pairs,)"""
        queries, query_mask, query_intra = self._encoded(pairs.padded_queries())
        items, item_mask, item_intra = self._encoded(pairs.padded_items())
        affinity = torch.relu(self.cross(queries)) @ torch.relu(self.cross(items)).mT
        query = self._summary(queries, items, query_mask, item_mask, affinity, query_intra)
        item = self._summary(items, queries, item_mask, query_mask, affinity.mT, item_intra)
        return self.head(joined_pair(query, item))

    def _encoded(self, texts: Padded) -> tuple[Tensor, Tensor, Tensor]:
        """Words (pair, word, size), their mask, and their intra-attention; each distinct text is encoded once."""
        words = self.dropout(self.encoder(self.words(texts.tokens)))
        similarity = self.intra(words) @ words.mT
        attended = _softmax(similarity, texts.mask[:, None, :]) @ words
        return words[texts.of_pair], texts.mask[texts.of_pair], attended[texts.of_pair]

    def _summary(
        self, words: Tensor, others: Tensor, mask: Tensor, others_mask: Tensor, affinity: Tensor, intra: Tensor
    ) -> Tensor:
        """One text of each pair as a vector (pair, 2 * recurrent); affinity is (pair, word, other word)."""
        pair_mask = others_mask[:, None, :]
        highest = affinity.masked_fill(~pair_mask, -torch.inf).amax(2)
        average = affinity.masked_fill(~pair_mask, 0.0).sum(2) / others_mask.sum(1, keepdim=True)
        attended = (
            (_softmax(highest, mask)[:, None, :] @ words).expand_as(words),
            (_softmax(average, mask)[:, None, :] @ words).expand_as(words),
            _softmax(affinity, pair_mask) @ others,
            intra,
        )
        hints = [cast(vectors, words) for cast, vectors in zip(self.casts, attended, strict=True)]
        states = self.dropout(run_lstm(self.lstm, torch.cat([words, *hints], -1), mask))
        return torch.cat([masked_mean(states, mask), masked_max(states, mask)], -1)


def _softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis; masked cells get 0, whole rows of padding are uniform and meet masks later."""
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1)
