"""Stacked relu networks that kernels of a CUDA device take forwards and backwards, without autograd and without copies of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rankpolicy.kernels import on_gpu
from rankpolicy.models.stack import Stack


class KernelNetworks:
    """Scores of the networks of a stack, and the gradient of their weights.

    Parameters
    ----------
    stack
        The networks; ``serve`` says whether there are kernels for them.
    """

    def __init__(self, stack: Stack) -> None:
        from rankpolicy.kernels.triton.relu_network import Layout

        self.stack = stack
        first = stack.weights[0]
        hidden = tuple(weight.shape[1] for weight in stack.weights[:-2:2])
        self.layout = Layout(stack.num_members, first.shape[2], hidden)
        self._thresholds = torch.stack([own.int() for own in stack.thresholds])
        per_group = stack.num_members // stack.num_groups
        members = torch.arange(stack.num_members, device=first.device)
        self._draws_of = members // per_group * stack.num_networks + members % stack.num_networks
        self._read: tuple[Any, ...] = ()

    @staticmethod
    def serve(stack: Stack | None, features: Any) -> bool:
        """Whether kernels can take these networks: their hidden layers are few units wide, and all is in float32 on a CUDA device.

        Parameters
        ----------
        stack
            The networks, or None.
        features
            What they read.
        """
        if stack is None or not isinstance(features, Tensor) or not on_gpu(features):
            return False
        from rankpolicy.kernels.triton.relu_network import WIDEST

        hidden = [weight.shape[1] for weight in stack.weights[:-2:2]]
        is_single = stack.flat.dtype == torch.float32 and features.dtype == torch.float32 and features.is_contiguous()
        return is_single and len(hidden) > 0 and max(hidden) <= WIDEST

    def scores(self, features: Tensor, rows: Tensor, *, generators: Sequence[torch.Generator]) -> Tensor:
        """Scores (member, row), with dropout.

        Parameters
        ----------
        features
            The features of all items.
        rows
            The rows that the networks of each group read (group, row).
        generators
            Where dropout is drawn from, one per group.
        """
        from rankpolicy.kernels.triton.relu_network import relu_scores

        dropout = self._drawn(rows.shape[1], generators)
        given = (self.stack.flat, features, rows, self.layout)
        scores, activations = relu_scores(*given, dropout=dropout)
        self._read = (given, activations, dropout)
        return scores

    def gradient(self, slope: Tensor) -> Tensor:
        """The gradient of the loss in the flat weights, for its slopes in the last scores.

        Parameters
        ----------
        slope
            dloss/dscores (member, row).
        """
        from rankpolicy.kernels.triton.relu_network import relu_gradient

        given, activations, dropout = self._read
        self._read = ()
        return relu_gradient(slope, *given, activations=activations, dropout=dropout)

    def _drawn(self, num_rows: int, generators: Sequence[torch.Generator]) -> Any:
        """The random bytes that ``dropout_draws`` would give, in one array."""
        from rankpolicy.kernels.triton.relu_network import Dropout

        if not any(self.stack.is_dropping):
            return None
        counts = [(num_rows * width + 7) // 8 for width in self.layout.hidden]
        shape = (len(generators), self.stack.num_networks, sum(counts))
        numbers = torch.empty(shape, dtype=torch.int64, device=self._thresholds.device)
        for own, generator in zip(numbers, generators, strict=True):
            # The whole range of int64, so that all eight bytes are random.
            own.view(-1).random_(-(2**63), None, generator=generator)
        draws = numbers.view(-1, shape[2]).view(torch.uint8)
        return Dropout(draws, self._draws_of, self._thresholds)
