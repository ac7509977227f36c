"""One step of AdamW for several members at once; training/optimizer.py is the specification."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit

_BLOCK = 4096


def adamw(
    weights: NDArray[Any],
    gradient: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
    rates: NDArray[Any],
    keeps: NDArray[Any],
    steps: float,
) -> None:
    """Move weights (member, weight) and both moments in place; ``rates`` and ``keeps`` (member,) are step size and factor of decay."""
    num_blocks = (weights.shape[1] + _BLOCK - 1) // _BLOCK
    _adamw(
        weights, gradient, first, second, rates, keeps, np.float32(1 - 0.9**steps), np.float32(1 - 0.999**steps),
        num_tasks=len(weights) * num_blocks, nanoseconds=2 * weights.size,
    )  # fmt: skip


def parts_of_members(shapes: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Where the weights of each member lie in a flat array of weights (part, 3): start, end, member; long ones in several parts.

    Parameters
    ----------
    shapes
        The shape of each array of weights, whose first axis is the member; they follow one another in the flat array.
    """
    found, start = [], 0
    for num_members, *others in shapes:
        size = math.prod(others)
        for member in range(num_members):
            ends = [*range(start + _BLOCK, start + size, _BLOCK), start + size]
            found += [(first, end, member) for first, end in zip([start, *ends], ends, strict=False)]
            start += size
    return np.array(found, np.int64)


def adamw_flat(
    weights: NDArray[Any],
    gradient: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
    rates: NDArray[Any],
    keeps: NDArray[Any],
    steps: float,
    parts: NDArray[np.int64],
) -> None:
    """As ``adamw``, of all weights at once, which lie in one array (weight,) as ``parts`` says."""
    _adamw_flat(
        weights, gradient, first, second, rates, keeps, np.float32(1 - 0.9**steps), np.float32(1 - 0.999**steps), parts,
        num_tasks=len(parts), nanoseconds=2 * weights.size,
    )  # fmt: skip


@njit(parallel=True, nogil=True)
def _adamw_flat(weights, gradient, first, second, rates, keeps, correction, square_correction, parts):
    for number in prange(len(parts)):
        start, end, member = parts[number, 0], parts[number, 1], parts[number, 2]
        _part(
            weights[start:end], gradient[start:end], first[start:end], second[start:end],
            rates[member] / correction, keeps[member], np.float32(1) / square_correction,
        )  # fmt: skip


@njit(parallel=True, nogil=True)
def _adamw(weights, gradient, first, second, rates, keeps, correction, square_correction):
    num_members, num_weights = weights.shape
    num_blocks = (num_weights + _BLOCK - 1) // _BLOCK
    for block in prange(num_members * num_blocks):
        member, start = block // num_blocks, block % num_blocks * _BLOCK
        end = min(start + _BLOCK, num_weights)
        _part(
            weights[member, start:end], gradient[member, start:end], first[member, start:end], second[member, start:end],
            rates[member] / correction, keeps[member], np.float32(1) / square_correction,
        )  # fmt: skip


@njit(nogil=True)
def _part(weights, gradient, first, second, rate, keep, square_scale):
    # 1 - 0.999 in float32 would be off by 1e-5.
    square_beta, epsilon = np.float32(0.999), np.float32(1e-8)
    share, square_share = np.float32(0.1), np.float32(0.001)
    for k in range(len(weights)):
        g = gradient[k]
        m = first[k] + (g - first[k]) * share
        v = second[k] * square_beta + g * g * square_share
        first[k], second[k] = m, v
        weights[k] = weights[k] * keep - rate * m / (math.sqrt(v * square_scale) + epsilon)
