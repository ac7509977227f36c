"""The weights of networks that are trained together, layer by layer in single tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rankpolicy.data.rows import NetworkRows, QueryRows
from rankpolicy.data.texts.text_pairs import TextPairs
from rankpolicy.models.average import (
    StackedLayers,
    dropout_draws,
    layer_shapes,
    linear_layers,
    linears_by_layer,
    stacked_layers,
    stacked_tensors,
)


def stack_shape(network: nn.Module) -> object | None:
    """What networks must have in common to be stacked; None for a network that cannot be."""
    members = _members(network)
    shapes = set(map(layer_shapes, map(linear_layers, members)))
    return (len(members), *shapes) if len(shapes) == 1 and None not in shapes else None


def scores_of_each(networks: Sequence[nn.Module], inputs: NetworkRows) -> Tensor:
    """Flat scores (network, item) of networks of equal ``stack_shape`` that read the same, without dropout."""
    layers = stacked_layers([member for network in networks for member in _members(network)])
    assert layers is not None
    assert not isinstance(inputs, QueryRows | TextPairs)
    blocks = [inputs] if isinstance(inputs, Tensor) else inputs.blocks()
    of_members = torch.cat([layers.scores(block[None]) for block in blocks], 1)
    return of_members.view(len(networks), -1, of_members.shape[1]).mean(1)


class Stack:
    """Networks whose weights are slices of shared tensors: a single product per layer scores the items with all of them.

    The parameters of the networks are views of the shared tensors until ``release``.
    """

    def __init__(self, networks: Sequence[nn.Module], *, num_groups: int = 1) -> None:
        members = [member for network in networks for member in _members(network)]
        self.num_members, self.num_groups = len(members), num_groups
        self.num_networks = self.num_members // len(networks)
        by_layer = linears_by_layer(members)
        assert by_layer is not None, "networks of equal stack_shape"
        with torch.no_grad():
            stacked, self.dropout = stacked_tensors(by_layer)
        # The memory of all weights, layer by layer.
        self.flat = torch.cat([weights.view(-1) for weights in stacked])
        slices = self.flat.split([weights.numel() for weights in stacked])
        self.weights = [
            flat.view(weights.shape).requires_grad_() for flat, weights in zip(slices, stacked, strict=True)
        ]
        # In the order of the weights: the parameters of the members.
        self._parameters = [
            [getattr(linear, name) for linear, _ in layer] for layer in by_layer for name in ("weight", "bias")
        ]
        for parameters, weights in zip(self._parameters, self.weights, strict=True):
            for parameter, of_member in zip(parameters, weights.detach(), strict=True):
                parameter.data = of_member

    @property
    def layers(self) -> StackedLayers:
        """The layers, through which gradients reach ``weights``."""
        return StackedLayers.of(self.weights, self.dropout, num_groups=self.num_groups)

    def training_scores(
        self, features: Tensor, num_items: Sequence[int], *, generators: Sequence[torch.Generator | None]
    ) -> Tensor:
        """Scores (member, row) of features (group, row, feature), with dropout."""
        layers = self.layers
        draws = dropout_draws(layers, num_items, num_networks=self.num_networks, generators=generators)
        return layers.scores(features, draws=draws)

    def release(self) -> None:
        """Give every network its separate weights again."""
        for parameters in self._parameters:
            for parameter in parameters:
                parameter.data = parameter.data.clone()


def _members(network: nn.Module) -> Sequence[nn.Module]:
    members = getattr(network, "members", None)
    return list(members) if isinstance(members, nn.ModuleList) else [network]
