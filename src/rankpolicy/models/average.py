"""The mean of several networks; those of one shape are one: a single product per layer scores the items with all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rankpolicy.data.rows import NetworkRows, QueryRows
from rankpolicy.data.texts.text_pairs import TextPairs
from rankpolicy.models.layers import ByteDropout, RandomModule, relu_dropout
from rankpolicy.models.linear import LinearNetwork
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.types import RankPolicyError


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
        self._stacked: tuple[tuple[int, int], ScoringLayers | None] | None = None
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

    def forward(self, features: Tensor | QueryRows | TextPairs) -> Tensor:
        """features (items, features), rows of queries or pairs of texts -> scores (items,)

        Parameters
        ----------
        features
            What every member reads.
        """
        if not self.training and not torch.is_grad_enabled() and isinstance(features, Tensor):
            layers = self._scoring_layers()
            if layers is not None:
                return layers.mean_scores(features)
        return self.member_scores(features).mean(0)

    def member_scores(self, features: Tensor | QueryRows | TextPairs) -> Tensor:
        """features (items, features), rows of queries or pairs of texts -> scores of each member (member, item)

        Parameters
        ----------
        features
            What every member reads.
        """
        layers = stacked_layers(list(self.members)) if isinstance(features, Tensor) else None
        if layers is None or not isinstance(features, Tensor):
            return torch.stack([member(features) for member in self.members])
        if not self.training or not any(layers.thresholds):
            return layers.scores(features)
        draws = dropout_draws(layers, len(features), generator=self._generator())
        return layers.scores(features, draws=draws)

    def _scoring_layers(self) -> ScoringLayers | None:
        """The members as one network, kept until their weights change; None where they cannot be stacked."""
        # Every change in place counts up a version; a move to another device or dtype moves the first weight too.
        state = (self._weights[0].data_ptr() if self._weights else 0, sum(weight._version for weight in self._weights))
        known = self._stacked
        if known is None or known[0] != state:
            layers = stacked_layers(list(self.members))
            known = self._stacked = state, None if layers is None else layers.for_scoring()
        return known[1]

    def _generator(self) -> torch.Generator | None:
        """Where the members draw from."""
        return next((module.generator for module in self.modules() if isinstance(module, RandomModule)), None)


def scores_of_all(network: nn.Module, inputs: NetworkRows) -> Tensor:
    """Flat scores (items,): plain tensors of features all at once, others in blocks."""
    if isinstance(inputs, Tensor):
        scores: Tensor = network(inputs)
        return scores
    return torch.cat([network(block) for block in inputs.blocks()])


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

    def for_scoring(self) -> ScoringLayers:
        """The layers as ``ScoringLayers`` holds them."""
        weights, bias = self.first
        if not self.later:
            return ScoringLayers((weights.mean(1, keepdim=True), bias.mean(0, keepdim=True)), (), None)
        *hidden, (last_weights, last_bias) = self.later
        return ScoringLayers(
            (weights.contiguous(), bias),
            tuple((inner.contiguous(), biases) for inner, biases in hidden),
            (last_weights / len(last_weights), last_bias.mean(0)),
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


@dataclass(frozen=True, slots=True, eq=False)
class ScoringLayers:
    """Stacked layers for scores without gradients, in as few operations as possible: the last layer takes the mean over members.

    Parameters
    ----------
    first
        Weights (inputs, member * outputs) and biases (member * outputs,) of the first layer.
    hidden
        Weights (member, inputs, outputs) and biases (member, 1, outputs) of the layers between.
    last
        Weights (member, inputs, 1) and bias (1, 1) of the last layer; None where the first is the last.
    """

    first: tuple[Tensor, Tensor]
    hidden: tuple[tuple[Tensor, Tensor], ...]
    last: tuple[Tensor, Tensor] | None

    def mean_scores(self, features: Tensor) -> Tensor:
        """The mean score over members (item,).

        Parameters
        ----------
        features
            What every member reads.
        """
        layer = torch.addmm(self.first[1], features, self.first[0])
        if self.last is None:
            return layer.view(-1)
        weights, bias = self.last
        layer = layer.relu_().view(len(features), len(weights), -1).transpose(0, 1)
        for inner, biases in self.hidden:
            layer = torch.baddbmm(biases, layer, inner).relu_()
        return torch.addbmm(bias, layer, weights).view(-1)


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


def check_num_networks(num_networks: int, weights: Mapping[str, Tensor]) -> None:
    """Refuse another number of networks than the weights are of.

    Parameters
    ----------
    num_networks
        The setting of the ranker.
    weights
        The weights by name: ``members.0.output.bias`` is of the first network.
    """
    members = {name.split(".")[1] for name in weights if name.startswith("members.")}
    if len(members) != num_networks:
        raise RankPolicyError(
            f"the file says num_networks={num_networks}, but holds the weights of another network: members.{len(members)} is "
            f"{'missing' if num_networks > len(members) else 'not part of it'}. Copy or train the model again."
        )


def check_weights(network: nn.Module, weights: Mapping[str, Tensor], *, what: str) -> None:
    """Refuse weights of another network or vocabulary, of another kind, and weights that are not finite.

    Parameters
    ----------
    network
        The network; it may be on the device "meta", which has shapes only.
    weights
        The weights by name.
    what
        What the file says it holds, for error messages.
    """
    expected = network.state_dict()
    differ = sorted(set(expected) ^ set(weights))
    if differ:
        raise RankPolicyError(
            f"the file says {what}, but holds the weights of another network: {differ[0]} is "
            f"{'missing' if differ[0] in expected else 'not part of it'}. Train the model again."
        )
    for name, own in expected.items():
        given = weights[name]
        if name.endswith("words.weight") and own.shape != given.shape:
            raise RankPolicyError(
                f"the vocabulary must be the one the network was trained with: it has {own.shape[0]} numbers, "
                f"the network vectors for {given.shape[0]}. Copy or train the model again."
            )
        if own.shape != given.shape or own.dtype != given.dtype:
            raise RankPolicyError(
                f"the file says {what}, but {name} is {given.dtype} of shape {tuple(given.shape)}; that network has "
                f"{own.dtype} of shape {tuple(own.shape)}. Copy or train the model again."
            )
        if given.is_floating_point() and not given.isfinite().all():
            raise RankPolicyError(f"the weights must be finite; {name} holds NaN or infinity. Train the model again.")
