"""Scores of a whole dataset."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankpolicy.data.texts.text_pairs import TextPairs


def scores_of_all(network: nn.Module, inputs: Tensor | TextPairs) -> Tensor:
    """Flat scores (items,): features all at once, texts in blocks."""
    if isinstance(inputs, Tensor):
        scores: Tensor = network(inputs)
        return scores
    return torch.cat([network(block) for block in inputs.blocks()])
