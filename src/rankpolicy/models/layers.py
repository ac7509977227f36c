"""Layers of networks whose random numbers, initial weights and dropout, come from a generator that is passed in; pooling over texts.

Layers from torch have the distribution of initial weights that torch gives them by default. They are made such that torch
draws nothing from its global generator: on the device "meta", or without its constructor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def linear(num_inputs: int, num_outputs: int, *, bias: bool = True, generator: torch.Generator | None) -> nn.Linear:
    """A linear layer; weights and biases are uniform within 1 / sqrt(num_inputs) of 0."""
    # Without its constructor, which draws from torch's global generator, and which takes three times as long on the device "meta".
    layer: nn.Linear = nn.Linear.__new__(nn.Linear)
    nn.Module.__init__(layer)
    layer.in_features, layer.out_features = num_inputs, num_outputs
    layer.weight = nn.Parameter(torch.empty(num_outputs, num_inputs, device=_device()))
    layer.register_parameter("bias", nn.Parameter(torch.empty(num_outputs, device=_device())) if bias else None)
    nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)
    if bias:
        bound = 1 / math.sqrt(num_inputs) if num_inputs else 0.0
        nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
    return layer


def drawn_within(network: nn.Module, bound: float | None, *, generator: torch.Generator | None) -> None:
    """Draw all weights and biases of a network anew, uniformly from (-bound, bound); None leaves them."""
    if bound is not None:
        for weight in network.parameters():
            nn.init.uniform_(weight, -bound, bound, generator=generator)


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


class RandomModule(nn.Module):
    """A module that draws from ``generator`` when it is trained; None stands for torch's global generator."""

    def __init__(self) -> None:
        super().__init__()
        self.generator: torch.Generator | None = None


class ByteDropout(RandomModule):
    """Zero each activation with probability round(256 * rate) / 256 and scale the others up to keep the mean (Srivastava et al. 2014).

    Eight masks come from one random number: on a CPU, one number per activation would be the slowest part of a step.

    >>> ByteDropout(0.5).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.threshold = min(round(256 * rate), 255)

    def forward(self, activations: Tensor) -> Tensor:
        """Activations of any shape -> the same shape; unchanged outside training."""
        if not self.training or self.threshold == 0:
            return activations
        count = activations.numel()
        numbers = torch.empty((count + 7) // 8, dtype=torch.int64, device=activations.device)
        # The whole range of int64, so that all eight bytes are random.
        numbers.random_(-(2**63), None, generator=self.generator)
        draws = numbers.view(torch.uint8)[:count].view(activations.shape)
        return activations * (draws >= self.threshold) * (256 / (256 - self.threshold))


@contextmanager
def drawing_from(network: nn.Module, generator: torch.Generator) -> Iterator[None]:
    """Let all random modules of a network draw from this generator, until the block ends."""
    modules = [module for module in network.modules() if isinstance(module, RandomModule)]
    for module in modules:
        module.generator = generator
    try:
        yield
    finally:
        for module in modules:
            module.generator = None


@contextmanager
def global_generator_seeded_by(generator: torch.Generator | None) -> Iterator[None]:
    """Seed torch's global generators from this one, and put them back when the block ends; None leaves them as they are.

    For code of others, such as a language model or a user's own network, which can draw from torch's global generators alone.
    """
    if generator is None:
        yield
        return
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    with torch.random.fork_rng(devices=[generator.device] if generator.device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _device() -> str:
    """The CPU, unless only shapes are wanted, in a block ``with torch.device("meta"):``, where nothing is allocated."""
    return "meta" if torch.get_default_device().type == "meta" else "cpu"


def run_lstm(lstm: nn.LSTM, tokens: Tensor, mask: Tensor) -> Tensor:
    """Outputs (text, token, width) of a batch-first LSTM on tokens (text, token, features); 0 at padding."""
    if not lstm.bidirectional:
        # Padding comes after the text, so that a forward LSTM needs no packing, nor lengths fetched from a GPU.
        states: Tensor = lstm(tokens)[0] * mask[..., None]
        return states
    packed = pack_padded_sequence(tokens, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=tokens.shape[1])[0]


def masked_mean(tokens: Tensor, mask: Tensor) -> Tensor:
    """Mean over real tokens: (text, token, width) -> (text, width).

    >>> masked_mean(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([[True, True, False]]))
    tensor([[2.]])
    """
    return (tokens * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


def masked_max(tokens: Tensor, mask: Tensor) -> Tensor:
    """Maximum over real tokens: (text, token, width) -> (text, width)."""
    return tokens.masked_fill(~mask[..., None], -torch.inf).amax(1)


def joined_pair(query: Tensor, item: Tensor) -> Tensor:
    """[h_q; h_a; h_q * h_a; h_q - h_a], how BanditRank joins the vectors of a question and an answer."""
    return torch.cat([query, item, query * item, query - item], -1)


def relu_dropout(inputs: Tensor, draws: Tensor, draws_of: Tensor, *, thresholds: Tensor, by_item: bool) -> Tensor:
    """relu(inputs) where a draw is at least the threshold, else 0, scaled up to keep the mean: (member, item, output).

    Inputs are (item, member, output) with ``by_item``, else (member, item, output); draws random bytes (row, item * output);
    member m reads the row ``draws_of[m]``; thresholds (member,) of 256.
    """
    activations = inputs.transpose(0, 1) if by_item else inputs
    is_kept = draws[draws_of].view(activations.shape) >= thresholds[:, None, None]
    scales = 256 / (256 - thresholds.to(inputs.dtype))
    return activations.relu() * is_kept.to(inputs.dtype).mul_(scales[:, None, None])
