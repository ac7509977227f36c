"""Several networks, one score."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


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
