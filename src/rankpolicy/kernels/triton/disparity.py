"""Disparity between items on a GPU: all pairs of a query, block by block, without a matrix of pairs in memory.

The formulas are those of fairness/individual_disparity.py, whose ``pairwise`` is the reference.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 64


def individual_disparities(exposure: Tensor, merit: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Values (query,) and gradients in exposure (query, item), float32."""
    num_queries, num_items = exposure.shape
    has_merit = mask & (merit > 0)
    merit = merit.float().masked_fill(~has_merit, 0.0).contiguous()
    safe_merit = merit.masked_fill(~has_merit, 1.0)
    treatment = (exposure.detach().float() / safe_merit).contiguous()
    excess = torch.zeros_like(treatment)
    pairs, balance = (torch.zeros(treatment.shape, dtype=torch.int32, device=exposure.device) for _ in range(2))
    if excess.numel() > 0:
        with torch.cuda.device_of(exposure):
            pair_kernel[(num_queries, triton.cdiv(num_items, _BLOCK))](
                treatment, merit, excess, pairs, balance, num_items, BLOCK=_BLOCK, num_warps=4
            )
    num_pairs = pairs.sum(-1).clamp(min=1).float()
    gradient = balance.float() / (num_pairs[:, None] * safe_merit)
    return excess.sum(-1) / num_pairs, gradient


@triton.jit(do_not_specialize=["num_items"])
def pair_kernel(treatment, merit, excess, pairs, balance, num_items, BLOCK: tl.constexpr):
    """For each item i with x = exposure per unit of merit, over the pairs H in which its merit is at least the other's:

    Σ_j max(0, x_i - x_j) and the number of pairs; and the number of pairs (i, j) with x_i > x_j less that of (j, i) with x_j > x_i.
    """
    row = tl.program_id(0).to(tl.int64) * num_items
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x_i = tl.load(treatment + row + i, mask=i < num_items, other=0.0)[:, None]
    m_i = tl.load(merit + row + i, mask=i < num_items, other=0.0)[:, None]
    sum_of_excess = tl.zeros((BLOCK,), tl.float32)
    num_pairs = tl.zeros((BLOCK,), tl.int32)
    above_less_below = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, num_items, BLOCK):
        j = start + tl.arange(0, BLOCK)
        x_j = tl.load(treatment + row + j, mask=j < num_items, other=0.0)[None, :]
        m_j = tl.load(merit + row + j, mask=j < num_items, other=0.0)[None, :]
        is_pair = (m_i > 0.0) & (m_j > 0.0) & (i[:, None] != j[None, :])
        is_higher = is_pair & (m_i >= m_j)
        sum_of_excess += tl.sum(tl.where(is_higher, tl.maximum(x_i - x_j, 0.0), 0.0), 1)
        num_pairs += tl.sum(is_higher.to(tl.int32), 1)
        is_above = is_higher & (x_i > x_j)
        is_below = is_pair & (m_j >= m_i) & (x_j > x_i)
        above_less_below += tl.sum(is_above.to(tl.int32) - is_below.to(tl.int32), 1)
    tl.store(excess + row + i, sum_of_excess, mask=i < num_items)
    tl.store(pairs + row + i, num_pairs, mask=i < num_items)
    tl.store(balance + row + i, above_less_below, mask=i < num_items)
