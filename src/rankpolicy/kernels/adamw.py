"""One step of AdamW for several members at once; training/optimizer.py is the specification."""

from __future__ import annotations

import math
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
