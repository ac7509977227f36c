"""Layers whose initial weights are drawn from a generator that is passed in, not from torch's global one.

Each has the distribution that torch gives the layer by default. Layers are first made on the device "meta", where torch draws nothing.
"""

from __future__ import annotations

import math

import torch
from torch import nn


def linear(num_inputs: int, num_outputs: int, *, bias: bool = True, generator: torch.Generator | None) -> nn.Linear:
    """A linear layer; weights and biases are uniform within 1 / sqrt(num_inputs) of 0."""
    layer = nn.Linear(num_inputs, num_outputs, bias=bias, device="meta").to_empty(device=_device())
    nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)
    if bias:
        bound = 1 / math.sqrt(num_inputs) if num_inputs else 0.0
        nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
    return layer


def lstm(num_inputs: int, width: int, *, bidirectional: bool = False, generator: torch.Generator | None) -> nn.LSTM:
    """One batch-first LSTM layer; weights and biases are uniform within 1 / sqrt(width) of 0."""
    layer = nn.LSTM(num_inputs, width, batch_first=True, bidirectional=bidirectional, device="meta")
    layer.to_empty(device=_device())
    bound = 1 / math.sqrt(width)
    for weight in layer.parameters():
        nn.init.uniform_(weight, -bound, bound, generator=generator)
    layer.flatten_parameters()
    return layer


def embedding(count: int, size: int, *, scale: float, generator: torch.Generator | None) -> nn.Embedding:
    """A table of vectors from the normal distribution with standard deviation ``scale``."""
    table = nn.Embedding(count, size, device="meta").to_empty(device=_device())
    nn.init.normal_(table.weight, std=scale, generator=generator)
    return table


def word_vectors(count: int, size: int, *, generator: torch.Generator | None) -> torch.Tensor:
    """Vectors (count, size) from the standard normal distribution; the first, that of padding, is 0."""
    vectors = torch.randn(count, size, generator=generator)
    vectors[0] = 0
    return vectors


def _device() -> str:
    """The CPU, unless only shapes are wanted, in a block ``with torch.device("meta"):``, where nothing is allocated."""
    return "meta" if torch.get_default_device().type == "meta" else "cpu"
