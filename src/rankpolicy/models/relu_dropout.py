"""Relu followed by dropout, compiled where it can be: as separate steps they take as long as the products of a small network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankpolicy.kernels import HAS_NUMBA


def relu_dropout(inputs: Tensor, draws: Tensor, *, threshold: int, by_item: bool) -> Tensor:
    """relu(inputs) where a draw is at least the threshold, else 0, scaled up to keep the mean: (member, item, output).

    Parameters
    ----------
    inputs
        Activations (item, member, output) with ``by_item``, else (member, item, output).
    draws
        Random bytes (member, item * output).
    threshold
        How many of 256 draws zero an activation.
    by_item
        Whether the first axis of the inputs is the item.
    """
    if inputs.device.type == "cpu" and inputs.dtype == torch.float32 and HAS_NUMBA:
        compiled: Tensor = _Compiled.apply(inputs, draws, threshold, by_item)  # type: ignore[no-untyped-call]
        return compiled
    activations = inputs.transpose(0, 1) if by_item else inputs
    return activations.relu() * (draws.view(activations.shape) >= threshold) * _scale(threshold)


def _scale(threshold: int) -> float:
    return 256 / (256 - threshold)


class _Compiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, draws: Tensor, threshold: int, by_item: bool) -> Tensor:
        from rankpolicy.kernels import relu_dropout as kernel

        outputs = torch.from_numpy(
            kernel.relu_dropout(
                inputs.detach().contiguous().numpy(),
                draws.numpy(),
                threshold=threshold,
                scale=_scale(threshold),
                by_item=by_item,
            )
        )
        ctx.save_for_backward(outputs)
        ctx.scale, ctx.by_item = _scale(threshold), by_item
        return outputs

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from rankpolicy.kernels import relu_dropout as kernel

        (outputs,) = ctx.saved_tensors
        passed = kernel.relu_dropout_gradient(
            gradient.contiguous().numpy(), outputs.numpy(), scale=ctx.scale, by_item=ctx.by_item
        )
        return torch.from_numpy(passed), None, None, None
