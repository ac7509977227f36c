"""Recurrent layers and pooling over padded sequences, unaffected by padding."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def run_lstm(lstm: nn.LSTM, tokens: Tensor, mask: Tensor) -> Tensor:
    """Outputs (text, token, width) of a batch-first LSTM on tokens (text, token, features); 0 at padding."""
    if not lstm.bidirectional:
        # Padding comes after the text, so that a forward LSTM needs no packing, nor lengths fetched from a GPU.
        states: Tensor = lstm(tokens)[0] * mask[..., None]
        return states
    packed = pack_padded_sequence(tokens, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=tokens.shape[1])[0]


def masked_mean(tokens: Tensor, mask: Tensor) -> Tensor:
    """Mean over real tokens: (text, token, width) -> (text, width).

    >>> masked_mean(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([[True, True, False]]))
    tensor([[2.]])
    """
    return (tokens * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


def masked_max(tokens: Tensor, mask: Tensor) -> Tensor:
    """Maximum over real tokens: (text, token, width) -> (text, width)."""
    return tokens.masked_fill(~mask[..., None], -torch.inf).amax(1)


def joined_pair(query: Tensor, item: Tensor) -> Tensor:
    """[h_q; h_a; h_q * h_a; h_q - h_a], how BanditRank joins the vectors of a question and an answer."""
    return torch.cat([query, item, query * item, query - item], -1)
