"""A pretrained language model that learns on, as a scorer of pairs of texts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankpolicy.data.texts.text_pairs import TextPairs
from rankpolicy.models.dropout import ByteDropout
from rankpolicy.models.mlp import MLP
from rankpolicy.models.recurrent import masked_mean

ENCODINGS = ("apart", "together", "both")
_TEXTS_AT_A_TIME = 64
_SHARPNESS = 10.0  # cosines of a sentence encoder lie within a few tenths; scores should lie within a few units


class FineTunedEncoder(nn.Module):
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
            self.head = MLP(width, hidden=hidden, dropout=dropout, activation=nn.Tanh)
        if encoding == "both":
            nn.init.zeros_(self.head.output.weight)
            nn.init.zeros_(self.head.output.bias)

    def forward(self, pairs: TextPairs) -> Tensor:
        """pairs -> scores (pairs,)"""
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
        return self.head(self.dropout(self._means(tokens, mask, segments)))

    def _means(self, tokens: Tensor, mask: Tensor, segments: Tensor | None = None) -> Tensor:
        """Mean states (text, width) of padded tokens, texts of like length at a time: attention to padding would be most of the work."""
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
