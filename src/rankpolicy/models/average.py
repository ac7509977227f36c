"""Scores of several networks, and of a whole dataset."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from rankpolicy.data.scaled_rows import ScaledRows
from rankpolicy.data.texts.text_pairs import TextPairs
from rankpolicy.models.layers import RandomModule
from rankpolicy.models.stacked import StackedLayers, dropout_draws, stacked_layers


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
        self._stacked: tuple[tuple[int, int], StackedLayers | None] | None = None
        self._weights: list[nn.Parameter] = list(self.members.parameters())

    def train(self, mode: bool = True) -> Average:
        """Switch between training and scoring.

        Parameters
        ----------
        mode
            Whether to train.
        """
        # Steps of a fused optimizer do not count up the versions of the weights.
        self._stacked = None
        super().train(mode)
        return self

    def forward(self, features: Tensor | TextPairs) -> Tensor:
        """features (items, features) or pairs of texts -> scores (items,)

        Parameters
        ----------
        features
            What every member reads.
        """
        if not self.training and not torch.is_grad_enabled() and isinstance(features, Tensor):
            layers = self._layers()
            if layers is not None:
                return layers.mean_scores(features)
        return self.member_scores(features).mean(0)

    def member_scores(self, features: Tensor | TextPairs) -> Tensor:
        """features (items, features) or pairs of texts -> scores of each member (member, item)

        Parameters
        ----------
        features
            What every member reads.
        """
        layers = self._layers() if isinstance(features, Tensor) else None
        if layers is None or not isinstance(features, Tensor):
            return torch.stack([member(features) for member in self.members])
        if not self.training or not any(layers.thresholds):
            return layers.scores(features)
        draws = dropout_draws(layers, len(features), generator=self._generator())
        return layers.scores(features, draws=draws)

    def _layers(self) -> StackedLayers | None:
        """The members as one network; kept until their weights change, unless gradients are wanted."""
        if torch.is_grad_enabled() or not self._weights:
            return stacked_layers(list(self.members))
        # Every change in place counts up a version; a move to another device or dtype moves the first weight too.
        state = (self._weights[0].data_ptr(), sum(weight._version for weight in self._weights))
        known = self._stacked
        if known is None or known[0] != state:
            layers = stacked_layers(list(self.members))
            known = self._stacked = state, None if layers is None else layers.contiguous()
        return known[1]

    def _generator(self) -> torch.Generator | None:
        """Where the members draw from."""
        return next((module.generator for module in self.modules() if isinstance(module, RandomModule)), None)


def scores_of_all(network: nn.Module, inputs: Tensor | ScaledRows | TextPairs) -> Tensor:
    """Flat scores (items,): features that are scaled already all at once, others in blocks."""
    if isinstance(inputs, Tensor):
        scores: Tensor = network(inputs)
        return scores
    return torch.cat([network(block) for block in inputs.blocks()])
