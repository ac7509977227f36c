"""One step of AdamW for several members at once on a GPU; training/optimizer.py is the specification."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


def segments(shapes: Sequence[torch.Size], device: torch.device) -> Tensor:
    """Where tensors (member, ...) of these shapes start that lie one after the other, their lengths, and the numbers of a member
    (3, tensor)."""
    counts = [shape.numel() for shape in shapes]
    starts = [sum(counts[:index]) for index in range(len(counts))]
    sizes = [count // shape[0] for count, shape in zip(counts, shapes, strict=True)]
    return torch.tensor([starts, counts, sizes], device=device)


def adamw(
    weights: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    rates: Tensor,
    keeps: Tensor,
    steps: Tensor,
    *,
    betas: Sequence[float],
    parts: Tensor,
    longest: int,
) -> None:
    """Move flat weights and both moments in place; ``rates`` and ``keeps`` (member,) are step size and factor of decay.

    ``parts`` is what ``segments`` gives, ``longest`` the length of the longest of them.
    """
    # e^(-1e9 t) is 0, as 0^t is.
    log_beta, log_square_beta = (math.log(beta) if beta > 0 else -1e9 for beta in betas)
    with torch.cuda.device_of(weights):
        adamw_kernel[(triton.cdiv(longest, _BLOCK), parts.shape[1])](
            weights, gradient, first, second, rates, keeps, steps, parts,
            BETA=betas[0], SQUARE_BETA=betas[1], LOG_BETA=log_beta, LOG_SQUARE_BETA=log_square_beta,
            BLOCK=_BLOCK, num_warps=4,
        )  # fmt: skip


@triton.jit
def adamw_kernel(
    weights, gradient, first, second, rates, keeps, steps, parts,
    BETA: tl.constexpr, SQUARE_BETA: tl.constexpr, LOG_BETA: tl.constexpr, LOG_SQUARE_BETA: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """One block of one tensor; ``steps`` (1,) is the number of steps, in float64."""
    part = tl.program_id(1)
    start = tl.load(parts + part)
    count = tl.load(parts + tl.num_programs(1) + part)
    size = tl.load(parts + 2 * tl.num_programs(1) + part)
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_weight = at < count
    if tl.program_id(0).to(tl.int64) * BLOCK < count:
        member = at // size
        t = tl.load(steps)
        # float64: 1 - 0.999^t is a small difference of numbers near 1.
        correction = (1.0 - tl.exp(t * LOG_BETA)).to(tl.float32)
        square_correction = (1.0 - tl.exp(t * LOG_SQUARE_BETA)).to(tl.float32)
        at += start
        g = tl.load(gradient + at, mask=is_weight, other=0.0)
        m = tl.load(first + at, mask=is_weight, other=0.0)
        v = tl.load(second + at, mask=is_weight, other=0.0)
        m += (g - m) * (1.0 - BETA)
        v = v * SQUARE_BETA + g * g * (1.0 - SQUARE_BETA)
        tl.store(first + at, m, mask=is_weight)
        tl.store(second + at, v, mask=is_weight)
        rate = tl.load(rates + member, mask=is_weight, other=0.0) / correction
        keep = tl.load(keeps + member, mask=is_weight, other=1.0)
        w = tl.load(weights + at, mask=is_weight, other=0.0)
        w = w * keep - rate * m / (tl.sqrt(v / square_correction) + 1e-8)
        tl.store(weights + at, w, mask=is_weight)
