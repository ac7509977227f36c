"""The weights of networks that are trained together, layer by layer in single tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rankpolicy.data.rows import NetworkRows, QueryRows
from rankpolicy.data.texts.text_pairs import TextPairs
from rankpolicy.models.average import (
    DropoutDraws,
    StackedLayers,
    dropout_draws,
    layer_shapes,
    linear_layers,
    scores_of_all,
    stacked_layers,
)


def stack_shape(network: nn.Module) -> object | None:
    """What networks must have in common to be stacked; None for a network that cannot be."""
    shapes = []
    for member in _members(network):
        layers = linear_layers(member)
        if layers is None:
            return None
        shapes.append(layer_shapes(layers))
    return tuple(shapes) if len(set(shapes)) == 1 else None


def scores_of_each(networks: Sequence[nn.Module], inputs: NetworkRows) -> Tensor:
    """Flat scores (network, item) of networks of equal ``stack_shape`` that read the same, without dropout."""
    if len(networks) == 1:
        return scores_of_all(networks[0], inputs)[None]
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
        of_networks = [list(_members(network)) for network in networks]
        self.num_networks, self.num_groups = len(of_networks[0]), num_groups
        members = [linear_layers(member) for of_one in of_networks for member in of_one]
        self._linears = list(zip(*(layers for layers in members if layers is not None), strict=True))
        self.num_members = len(members)
        first = members[0]
        assert first is not None
        self.is_dropping = [threshold > 0 for _, threshold in first[:-1]]
        stacked = [
            torch.stack([getattr(linear, name).detach() for linear, _ in layer_of_each])
            for layer_of_each in self._linears
            for name in ("weight", "bias")
        ]
        # The memory of all weights: of each layer the weights (member, outputs, inputs), then the biases (member, outputs).
        self.flat = torch.cat([tensor.view(-1) for tensor in stacked])
        slices = self.flat.split([tensor.numel() for tensor in stacked])
        self.weights = [flat.view(tensor.shape).requires_grad_() for flat, tensor in zip(slices, stacked, strict=True)]
        for together, (layer_of_each, name) in zip(
            self.weights,
            ((layer_of_each, name) for layer_of_each in self._linears for name in ("weight", "bias")),
            strict=True,
        ):
            for (linear, _), weights in zip(layer_of_each, together.detach(), strict=True):
                getattr(linear, name).data = weights
        device = self.weights[0].device
        self.thresholds = tuple(
            torch.tensor([threshold for _, threshold in layer_of_each], dtype=torch.uint8, device=device)
            for layer_of_each in self._linears[:-1]
        )

    @property
    def layers(self) -> StackedLayers:
        """The layers, through which gradients reach ``weights``."""
        (weights, biases), *later = zip(self.weights[::2], self.weights[1::2], strict=True)
        num_inputs = weights.shape[2]
        return StackedLayers(
            first=(
                weights.view(self.num_groups, -1, num_inputs).transpose(1, 2),
                biases.view(self.num_groups, 1, -1),
            ),
            later=tuple((inner.transpose(1, 2), bias[:, None]) for inner, bias in later),
            thresholds=self.thresholds,
        )

    def training_scores(
        self, features: Tensor, num_items: Sequence[int], *, generators: Sequence[torch.Generator | None]
    ) -> Tensor:
        """Scores (member, row) of features (group, row, feature), with dropout."""
        layers = self.layers
        draws: DropoutDraws | None = dropout_draws(
            layers, num_items, num_networks=self.num_networks, is_dropping=self.is_dropping, generators=generators
        )
        return layers.scores(features, draws=draws)

    def release(self) -> None:
        """Give every network its separate weights again."""
        for layer_of_each in self._linears:
            for linear, _ in layer_of_each:
                for name in ("weight", "bias"):
                    parameter = getattr(linear, name)
                    parameter.data = parameter.data.clone()


def _members(network: nn.Module) -> Sequence[nn.Module]:
    members = getattr(network, "members", None)
    return list(members) if isinstance(members, nn.ModuleList) else [network]
