"""Scores of everything a network may be asked to score at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankpolicy.data.texts.text_pairs import TextPairs


def scores_of_all(network: nn.Module, inputs: Tensor | TextPairs) -> Tensor:
    """Flat scores: features in one go, texts in blocks."""
    if isinstance(inputs, Tensor):
        return network(inputs)
    return torch.cat([network(block) for block in inputs.blocks()])
