"""One step of AdamW for several members at once on a GPU; training/optimizer.py is the specification."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


def adamw(
    weights: Tensor, gradient: Tensor, first: Tensor, second: Tensor, rates: Tensor, keeps: Tensor, steps: Tensor
) -> None:
    """Move weights (member, ...) and both moments in place; ``rates`` and ``keeps`` (member,) are step size and factor of decay."""
    count = weights.numel()
    with torch.cuda.device_of(weights):
        adamw_kernel[(triton.cdiv(count, _BLOCK),)](
            weights,
            gradient,
            first,
            second,
            rates,
            keeps,
            steps,
            count,
            count // len(weights),
            BLOCK=_BLOCK,
            num_warps=4,
        )


@triton.jit(do_not_specialize=["count", "size"])
def adamw_kernel(weights, gradient, first, second, rates, keeps, steps, count, size, BLOCK: tl.constexpr):
    """One block of the flat weights; ``size`` is the number of weights of a member, ``steps`` (1,) that of steps, in float64."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_weight = at < count
    member = at // size
    t = tl.load(steps)
    # float64: 1 - 0.999^t is a small difference of numbers near 1.
    correction = (1.0 - tl.exp(t * -0.10536051565782628)).to(tl.float32)
    square_correction = (1.0 - tl.exp(t * -0.0010005003335835344)).to(tl.float32)
    g = tl.load(gradient + at, mask=is_weight, other=0.0)
    m = tl.load(first + at, mask=is_weight, other=0.0)
    v = tl.load(second + at, mask=is_weight, other=0.0)
    m += (g - m) * 0.1
    v = v * 0.999 + g * g * 0.001
    tl.store(first + at, m, mask=is_weight)
    tl.store(second + at, v, mask=is_weight)
    rate = tl.load(rates + member, mask=is_weight, other=0.0) / correction
    keep = tl.load(keeps + member, mask=is_weight, other=1.0)
    w = tl.load(weights + at, mask=is_weight, other=0.0)
    w = w * keep - rate * m / (tl.sqrt(v / square_correction) + 1e-8)
    tl.store(weights + at, w, mask=is_weight)
