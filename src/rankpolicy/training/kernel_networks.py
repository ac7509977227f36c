"""Stacked relu networks that kernels of a CUDA device take forwards and backwards, without autograd and without copies of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rankpolicy.kernels import on_gpu
from rankpolicy.models.stack import Stack


class KernelNetworks:
    """Scores of the networks of a stack, and the gradient of their weights."""

    def __init__(self, stack: Stack) -> None:
        from rankpolicy.kernels.triton.relu_network import Layout

        self.stack = stack
        first = stack.weights[0]
        hidden = tuple(weight.shape[1] for weight in stack.weights[:-2:2])
        self.layout = Layout(stack.num_members, first.shape[2], hidden)
        self._thresholds = torch.stack([thresholds.int() for thresholds, _ in stack.dropout])
        per_group = stack.num_members // stack.num_groups
        members = torch.arange(stack.num_members, device=first.device)
        self._draws_of = members // per_group * stack.num_networks + members % stack.num_networks
        self._forwards: tuple[Any, ...] = ()

    @staticmethod
    def serve(stack: Stack, features: Any) -> bool:
        """Whether kernels can take these networks: their hidden layers are few units wide, and all is in float32 on a CUDA device."""
        if not isinstance(features, Tensor) or not on_gpu(features):
            return False
        from rankpolicy.kernels.triton.relu_network import WIDEST

        hidden = [weight.shape[1] for weight in stack.weights[:-2:2]]
        is_single = stack.flat.dtype == torch.float32 and features.dtype == torch.float32 and features.is_contiguous()
        return is_single and len(hidden) > 0 and max(hidden) <= WIDEST

    def scores(self, features: Tensor, rows: Tensor, *, generators: Sequence[torch.Generator]) -> Tensor:
        """Scores (member, row), with dropout, of the ``rows`` (group, row) of the features of all items."""
        from rankpolicy.kernels.triton.relu_network import relu_scores

        dropout = self._dropout(rows.shape[1], generators)
        arguments = (self.stack.flat, features, rows, self.layout)
        scores, activations = relu_scores(*arguments, dropout=dropout)
        self._forwards = (arguments, activations, dropout)
        return scores

    def gradient(self, slope: Tensor) -> Tensor:
        """The gradient of the loss in the flat weights, for its slopes (member, row) in the last scores."""
        from rankpolicy.kernels.triton.relu_network import relu_gradient

        arguments, activations, dropout = self._forwards
        self._forwards = ()
        return relu_gradient(slope, *arguments, activations=activations, dropout=dropout)

    def _dropout(self, num_rows: int, generators: Sequence[torch.Generator]) -> Any:
        """The random bytes that ``dropout_draws`` would give, in one array."""
        from rankpolicy.kernels.triton.relu_network import Dropout

        if not any(drops for _, drops in self.stack.dropout):
            return None
        counts = [(num_rows * width + 7) // 8 for width in self.layout.hidden]
        shape = (len(generators), self.stack.num_networks, sum(counts))
        numbers = torch.empty(shape, dtype=torch.int64, device=self._thresholds.device)
        for of_group, generator in zip(numbers, generators, strict=True):
            # The whole range of int64, so that all eight bytes are random.
            of_group.view(-1).random_(-(2**63), None, generator=generator)
        draws = numbers.view(-1, shape[2]).view(torch.uint8)
        return Dropout(draws, self._draws_of, self._thresholds)
