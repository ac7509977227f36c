"""The mean of several networks; those of one shape are one: a single product per layer scores the items with all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import torch
from torch import Tensor, nn

from rankpolicy.data.rows import NetworkRows, QueryRows
from rankpolicy.data.texts.text_pairs import TextPairs
from rankpolicy.models.layers import ByteDropout, RandomModule, relu_dropout
from rankpolicy.models.mlp import MLPNetwork


class Average(RandomModule):
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
        if not self.training:
            return layers.scores(features[None])
        draws = dropout_draws(layers, [len(features)], num_networks=len(self.members), generators=[self.generator])
        return layers.scores(features[None], draws=draws)

    def _scoring_layers(self) -> ScoringLayers | None:
        """The members as one network, kept until their weights change; None where they cannot be stacked."""
        # Every change in place counts up a version; a move to another device or dtype moves the first weight too.
        state = (self._weights[0].data_ptr() if self._weights else 0, sum(map(attrgetter("_version"), self._weights)))
        cached = self._stacked
        if cached is None or cached[0] != state:
            layers = stacked_layers(list(self.members))
            cached = self._stacked = state, None if layers is None else layers.for_scoring()
        return cached[1]


def scores_of_all(network: nn.Module, inputs: NetworkRows) -> Tensor:
    """Flat scores (items,): plain tensors of features all at once, others in blocks."""
    if isinstance(inputs, Tensor):
        all_at_once: Tensor = network(inputs)
        return all_at_once
    scores: Tensor | None = None
    start = 0
    # Into one tensor: many small ones between the large ones of a block would keep the allocator from using the memory of those again.
    for block in inputs.blocks():
        of_block = network(block)
        scores = of_block.new_empty(len(inputs)) if scores is None else scores
        scores[start : start + len(of_block)] = of_block
        start += len(of_block)
    assert scores is not None, "a dataset has items"
    return scores


@dataclass(frozen=True, slots=True, eq=False)
class StackedLayers:
    """The weights of several networks, layer by layer. Networks come in groups: those of one group read the same features."""

    # weights (group, inputs, member of the group * outputs) and biases (group, 1, member of the group * outputs) of
    # the first layer
    first: tuple[Tensor, Tensor]
    # weights (member, inputs, outputs) and biases (member, 1, outputs) of the other layers, group by group
    later: tuple[tuple[Tensor, Tensor], ...]
    # of each layer but the last: how many of 256 random bytes zero an activation of each member (member,), uint8
    # (``ByteDropout``), and whether any does
    dropout: Sequence[tuple[Tensor, bool]]

    @classmethod
    def of(
        cls, weights: Sequence[Tensor], dropout: Sequence[tuple[Tensor, bool]], *, num_groups: int = 1
    ) -> StackedLayers:
        """The layers of these ``stacked_tensors``, through which gradients reach them."""
        (first, biases), *later = zip(weights[::2], weights[1::2], strict=True)
        return cls(
            (first.reshape(num_groups, -1, first.shape[2]).transpose(1, 2), biases.reshape(num_groups, 1, -1)),
            tuple((inner.transpose(1, 2), bias[:, None]) for inner, bias in later),
            dropout,
        )

    @property
    def num_members(self) -> int:
        """How many networks there are in all groups."""
        return len(self.later[0][0]) if self.later else self.first[1].numel()

    def for_scoring(self) -> ScoringLayers:
        """The layers of a single group as ``ScoringLayers`` holds them."""
        weights, bias = self.first[0][0], self.first[1][0, 0]
        if not self.later:
            return ScoringLayers((weights.mean(1, keepdim=True), bias.mean(0, keepdim=True)), (), None)
        *hidden, (last_weights, last_bias) = self.later
        return ScoringLayers(
            (weights.contiguous(), bias),
            tuple((inner.contiguous(), biases) for inner, biases in hidden),
            (last_weights / len(last_weights), last_bias.mean(0)),
        )

    def scores(self, features: Tensor, *, draws: DropoutDraws | None = None) -> Tensor:
        """Scores (member, row) of features (group, row, feature)."""
        num_groups, num_rows = features.shape[:2]
        weights, bias = self.first
        is_one = num_groups == 1
        product = torch.addmm(bias[0, 0], features[0], weights[0]) if is_one else torch.baddbmm(bias, features, weights)
        by_item = product.view(num_groups, num_rows, self.num_members // num_groups, -1)
        layer = by_item.transpose(1, 2).reshape(self.num_members, num_rows, -1) if num_groups > 1 else by_item[0]
        for index, (inner, biases) in enumerate(self.later):
            is_by_item = index == 0 and num_groups == 1
            layer_draws = None if draws is None else draws.of_layers[index]
            if layer_draws is None:
                layer = (layer.transpose(0, 1) if is_by_item else layer).relu()
            else:
                assert draws is not None
                thresholds = self.dropout[index][0]
                layer = relu_dropout(layer, layer_draws, draws.rows, thresholds=thresholds, by_item=is_by_item)
            layer = torch.baddbmm(biases, layer, inner)
        if not self.later and num_groups == 1:
            layer = layer.transpose(0, 1)
        return layer.squeeze(-1)


@dataclass(frozen=True, slots=True, eq=False)
class DropoutDraws:
    """The random bytes of one step. Networks of one group and one place in their policy share them, as policies of equal seeds do."""

    # for each layer but the last, the random bytes (row, item * output), or None where it drops nothing
    of_layers: Sequence[Tensor | None]
    rows: Tensor  # the row that each member reads (member,)


@dataclass(frozen=True, slots=True, eq=False)
class ScoringLayers:
    """Stacked layers for scores without gradients, in as few operations as possible: the last layer takes the mean over members."""

    first: tuple[Tensor, Tensor]  # weights (inputs, member * outputs) and biases (member * outputs,) of the first layer
    # weights (member, inputs, outputs) and biases (member, 1, outputs) of the layers between
    hidden: tuple[tuple[Tensor, Tensor], ...]
    # weights (member, inputs, 1) and bias (1, 1) of the last layer; None where the first is the last
    last: tuple[Tensor, Tensor] | None

    def mean_scores(self, features: Tensor) -> Tensor:
        """The mean score over members (item,)."""
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
    by_layer = linears_by_layer(members)
    return None if by_layer is None else StackedLayers.of(*stacked_tensors(by_layer))


# Of each layer: the linear layer of every member, and how many of 256 activations after it are dropped.
LinearsByLayer = Sequence[Sequence[tuple[nn.Linear, int]]]


def linears_by_layer(members: Sequence[nn.Module]) -> LinearsByLayer | None:
    """The layers of networks of equal shape; None for networks that cannot be stacked."""
    layers = list(map(linear_layers, members))
    shapes = set(map(layer_shapes, layers))
    return list(zip(*filter(None, layers), strict=True)) if len(shapes) == 1 and None not in shapes else None


def stacked_tensors(by_layer: LinearsByLayer) -> tuple[list[Tensor], list[tuple[Tensor, bool]]]:
    """Of each layer the weights (member, outputs, inputs), then the biases (member, outputs); and the dropout after all but the last."""
    weights: list[Tensor] = []
    dropout: list[tuple[Tensor, bool]] = []
    for layer in by_layer:
        linears, thresholds = zip(*layer, strict=True)
        weights += [torch.stack(list(map(attrgetter(name), linears))) for name in ("weight", "bias")]
        dropout.append((torch.tensor(thresholds, dtype=torch.uint8, device=weights[0].device), thresholds[0] > 0))
    return weights, dropout[:-1]


def dropout_draws(
    layers: StackedLayers,
    num_items: Sequence[int],
    *,
    num_networks: int,
    generators: Sequence[torch.Generator | None],
) -> DropoutDraws | None:
    """The random bytes of one step, drawn from the generator of each group as if it had one policy; None where no layer drops anything."""
    is_dropping = [drops for _, drops in layers.dropout]
    if not any(is_dropping):
        return None
    device, most = layers.first[0].device, max(num_items)
    widths = [weights.shape[1] for weights, _ in layers.later]
    bytes_of_layers: list[list[Tensor]] = [[] for _ in widths]
    for rows, generator in zip(num_items, generators, strict=True):
        counts = [(rows * width + 7) // 8 if drops else 0 for width, drops in zip(widths, is_dropping, strict=True)]
        numbers = torch.empty(num_networks, sum(counts), dtype=torch.int64, device=device)
        # The whole range of int64, so that all eight bytes are random.
        numbers.view(-1).random_(-(2**63), None, generator=generator)
        for index, of_layer in enumerate(numbers.split(counts, 1)):
            width = widths[index]
            drawn = of_layer.contiguous().view(torch.uint8)[:, : rows * width]
            bytes_of_layers[index].append(
                nn.functional.pad(drawn, (0, (most - rows) * width)) if rows < most else drawn
            )
    per_group = layers.num_members // len(num_items)
    members = torch.arange(layers.num_members, device=device)
    return DropoutDraws(
        [
            torch.cat(of_layer).contiguous() if drops else None
            for of_layer, drops in zip(bytes_of_layers, is_dropping, strict=True)
        ],
        members // per_group * num_networks + members % num_networks,
    )


def linear_layers(network: nn.Module) -> list[tuple[nn.Linear, int]] | None:
    """The linear layers of a network of any number of relu layers and the dropout threshold after each; None for other networks."""
    if type(network) is not MLPNetwork:
        return None
    modules = list(network.hidden)
    layers = []
    for linear, activation, dropout in zip(modules[::3], modules[1::3], modules[2::3], strict=True):
        if type(activation) is not nn.ReLU or not isinstance(linear, nn.Linear) or not isinstance(dropout, ByteDropout):
            return None
        layers.append((linear, dropout.threshold))
    return [*layers, (network.output, 0)]


def layer_shapes(layers: list[tuple[nn.Linear, int]] | None) -> tuple[tuple[torch.Size, bool], ...] | None:
    """The shape of each layer, and whether activations are dropped after it; networks that agree in these can be stacked."""
    return None if layers is None else tuple((layer.weight.shape, threshold > 0) for layer, threshold in layers)
