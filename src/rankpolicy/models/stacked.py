"""Several feed-forward networks of one shape as one: a single product per layer scores the items with all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rankpolicy.models.layers import ByteDropout
from rankpolicy.models.linear import LinearNetwork
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.relu_dropout import relu_dropout


@dataclass(frozen=True, slots=True, eq=False)
class StackedLayers:
    """The weights of the members, layer by layer.

    Parameters
    ----------
    first
        Weights (inputs, member * outputs) and biases (member * outputs,) of the first layer, which all members apply to the same features.
    later
        Weights (member, inputs, outputs) and biases (member, 1, outputs) of the other layers.
    thresholds
        Of each layer but the last: how many of 256 random bytes zero an activation (``ByteDropout``).
    """

    first: tuple[Tensor, Tensor]
    later: tuple[tuple[Tensor, Tensor], ...]
    thresholds: tuple[int, ...]

    def contiguous(self) -> StackedLayers:
        """The same with weights as products read them fastest."""
        return StackedLayers(
            (self.first[0].contiguous(), self.first[1]),
            tuple((weights.contiguous(), biases) for weights, biases in self.later),
            self.thresholds,
        )

    def scores(self, features: Tensor, *, draws: Sequence[Tensor | None] | None = None) -> Tensor:
        """Scores (member, item) of features (items, features).

        Parameters
        ----------
        features
            What every member reads.
        draws
            For each layer but the last, the random bytes (member, item * output) of its dropout, or None; by default none.
        """
        num_members = len(self.later[0][0]) if self.later else len(self.first[1])
        by_item = torch.addmm(self.first[1], features, self.first[0]).view(len(features), num_members, -1)
        layer = by_item.transpose(0, 1)
        for place, (weights, biases) in enumerate(self.later):
            own = None if draws is None else draws[place]
            if own is None:
                layer = layer.relu()
            else:
                threshold = self.thresholds[place]
                inputs = by_item if place == 0 else layer
                layer = relu_dropout(inputs, own, threshold=threshold, by_item=place == 0)
            layer = torch.baddbmm(biases, layer, weights)
        return layer.squeeze(-1)

    def mean_scores(self, features: Tensor) -> Tensor:
        """The mean of ``scores`` over members (item,), in as few operations as possible and without gradients.

        Parameters
        ----------
        features
            What every member reads.
        """
        first = torch.addmm(self.first[1], features, self.first[0])
        if not self.later:
            return first.mean(1)
        *hidden, (weights, biases) = self.later
        num_members = len(weights)
        layer = first.relu_().view(len(features), num_members, -1).transpose(0, 1)
        for inner_weights, inner_biases in hidden:
            layer = torch.baddbmm(inner_biases, layer, inner_weights).relu_()
        return torch.addbmm(biases.sum(0), layer, weights).view(-1).div_(num_members)


def stacked_layers(members: Sequence[nn.Module]) -> StackedLayers | None:
    """The members as one network, through which gradients reach their own weights; None where they cannot be stacked."""
    layers = [_linear_layers(member) for member in members]
    first = layers[0]
    if first is None or any(other is None or _shapes(other) != _shapes(first) for other in layers):
        return None
    by_place = list(zip(*(own for own in layers if own is not None), strict=True))
    weights = [[layer.weight for layer, _ in place] for place in by_place]
    biases = [[layer.bias for layer, _ in place] for place in by_place]
    return StackedLayers(
        first=(torch.cat(weights[0]).t(), torch.cat(biases[0])),
        later=tuple(
            (torch.stack(w).transpose(1, 2), torch.stack(b)[:, None])
            for w, b in zip(weights[1:], biases[1:], strict=True)
        ),
        thresholds=tuple(threshold for _, threshold in first[:-1]),
    )


def dropout_draws(layers: StackedLayers, num_items: int, *, generator: torch.Generator | None) -> list[Tensor | None]:
    """Random bytes (member, item * output) for each layer but the last; None where a layer drops nothing.

    They are those that the members would draw one after the other.
    """
    num_members, device = len(layers.later[0][0]), layers.first[0].device
    widths = [weights.shape[1] for weights, _ in layers.later]
    counts = [
        (num_items * width + 7) // 8 if threshold else 0
        for width, threshold in zip(widths, layers.thresholds, strict=True)
    ]
    numbers = torch.empty(num_members, sum(counts), dtype=torch.int64, device=device)
    # The whole range of int64, so that all eight bytes are random.
    numbers.view(-1).random_(-(2**63), None, generator=generator)
    return [
        own.contiguous().view(torch.uint8)[:, : num_items * width].contiguous() if own.shape[1] else None
        for own, width in zip(numbers.split(counts, 1), widths, strict=True)
    ]


def _linear_layers(network: nn.Module) -> list[tuple[nn.Linear, int]] | None:
    """The linear layers of a network of relu layers and the dropout threshold after each; None for other networks."""
    if type(network) is LinearNetwork:
        return [(network.output, 0)]
    if type(network) is not MLPNetwork:
        return None
    modules = list(network.hidden)
    layers = []
    for linear, activation, dropout in zip(modules[::3], modules[1::3], modules[2::3], strict=True):
        if type(activation) is not nn.ReLU or not isinstance(linear, nn.Linear) or not isinstance(dropout, ByteDropout):
            return None
        layers.append((linear, dropout.threshold))
    return [*layers, (network.output, 0)]


def _shapes(layers: list[tuple[nn.Linear, int]]) -> list[tuple[torch.Size, int]]:
    return [(layer.weight.shape, threshold) for layer, threshold in layers]
