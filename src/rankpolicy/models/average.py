"""Scores of several networks, and of a whole dataset."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from rankpolicy.data.texts.text_pairs import TextPairs


class Average(nn.Module):
    """The mean of the scores of several networks.

    As a Plackett-Luce policy this is the geometric mean of the members' choice probabilities at every step.

    Parameters
    ----------
    members
        The networks, all with the same inputs.
    """

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, features: Tensor) -> Tensor:
        """features (items, features) or pairs of texts -> scores (items,)

        Parameters
        ----------
        features
            What every member reads.
        """
        return torch.stack([member(features) for member in self.members]).mean(0)


def scores_of_all(network: nn.Module, inputs: Tensor | TextPairs) -> Tensor:
    """Flat scores (items,): features all at once, texts in blocks."""
    if isinstance(inputs, Tensor):
        scores: Tensor = network(inputs)
        return scores
    return torch.cat([network(block) for block in inputs.blocks()])
