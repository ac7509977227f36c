"""Relu followed by dropout and its gradient, one pass over the activations each; models/layers.py is the specification."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit

_BLOCK_ROWS = 256


def relu_dropout(
    inputs: NDArray[Any],
    draws: NDArray[np.uint8],
    draws_of: NDArray[np.int64],
    *,
    thresholds: NDArray[np.uint8],
    scales: NDArray[Any],
    by_item: bool,
) -> NDArray[Any]:
    """scale * max(inputs, 0) where a draw is at least the threshold, else 0: (member, item, output).

    The inputs are (item, member, output) with ``by_item``, else (member, item, output). Each member has a threshold and a scale, and reads
    the row ``draws_of`` of the draws (row, item * output).
    """
    num_members, width = len(draws_of), inputs.shape[2]
    num_items = inputs.size // (num_members * width)
    outputs = np.empty((num_members, num_items, width), inputs.dtype)
    _forward(
        inputs.reshape(-1, width), draws, draws_of, thresholds, scales, by_item, outputs,
        num_tasks=num_members * _num_blocks(num_items), nanoseconds=inputs.size,
    )  # fmt: skip
    return outputs


def relu_dropout_gradient(
    gradient: NDArray[Any], outputs: NDArray[Any], *, scales: NDArray[Any], by_item: bool
) -> NDArray[Any]:
    """scale * gradient (member, item, output) where the outputs are above 0, else 0, in the layout of the inputs."""
    num_members, num_items, width = outputs.shape
    shape = (num_items, num_members, width) if by_item else outputs.shape
    result = np.empty(shape, outputs.dtype)
    _backward(
        gradient, outputs, scales, by_item, result.reshape(-1, width),
        num_tasks=num_members * _num_blocks(num_items), nanoseconds=outputs.size,
    )  # fmt: skip
    return result


@njit()
def _num_blocks(num_items):
    return (num_items + _BLOCK_ROWS - 1) // _BLOCK_ROWS


@njit(parallel=True, nogil=True)
def _forward(inputs, draws, draws_of, thresholds, scales, by_item, outputs):
    num_members, num_items, width = outputs.shape
    num_blocks = _num_blocks(num_items)
    for block in prange(num_members * num_blocks):
        member, first = block // num_blocks, block % num_blocks * _BLOCK_ROWS
        for item in range(first, min(first + _BLOCK_ROWS, num_items)):
            row = item * num_members + member if by_item else member * num_items + item
            own = draws[draws_of[member], item * width : (item + 1) * width]
            _row_forward(inputs[row], own, thresholds[member], scales[member], outputs[member, item])


@njit(nogil=True)
def _row_forward(inputs, draws, threshold, scale, outputs):
    for k in range(len(outputs)):
        value = max(inputs[k], np.float32(0)) * scale
        outputs[k] = value if draws[k] >= threshold else np.float32(0)


@njit(parallel=True, nogil=True)
def _backward(gradient, outputs, scales, by_item, result):
    num_members, num_items, _ = outputs.shape
    num_blocks = _num_blocks(num_items)
    for block in prange(num_members * num_blocks):
        member, first = block // num_blocks, block % num_blocks * _BLOCK_ROWS
        for item in range(first, min(first + _BLOCK_ROWS, num_items)):
            row = item * num_members + member if by_item else member * num_items + item
            _row_backward(gradient[member, item], outputs[member, item], scales[member], result[row])


@njit(nogil=True)
def _row_backward(gradient, outputs, scale, result):
    for k in range(len(result)):
        result[k] = gradient[k] * scale if outputs[k] > 0 else np.float32(0)
