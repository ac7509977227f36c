"""Scores of a whole dataset."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankpolicy.data.scaled_rows import ScaledRows
from rankpolicy.data.texts.text_pairs import TextPairs


def scores_of_all(network: nn.Module, inputs: Tensor | ScaledRows | TextPairs) -> Tensor:
    """Flat scores (items,): features that are scaled already all at once, others in blocks."""
    if isinstance(inputs, Tensor):
        scores: Tensor = network(inputs)
        return scores
    return torch.cat([network(block) for block in inputs.blocks()])
