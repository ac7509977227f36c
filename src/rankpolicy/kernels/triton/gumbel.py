"""Gradients that integrate each item's own noise, on a GPU (gradients/gumbel.py is the specification).

A program takes one draw of one query: noise from a counter-based generator, a bitonic network for the first positions, and one pass over
these for all items at once. What query q draws in sample s depends on the seed, q and s alone; a second kernel adds up the samples in
their order.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from rankpolicy.kernels.triton.reinforce import exponential_draws, gradient_kernel, sortable

_ITEMS = 128


class GumbelResult(NamedTuple):
    """Float32 arrays, and the draws they come from."""

    gradient: Tensor  # (query, item)
    utility: Tensor  # (query,) mean reward, without the constant of the form
    rankings: Tensor  # (query, sample, position), int32
    noisy_scores: (
        Tensor  # (query, sample, position), less the highest score of the query; -inf past the end of a short query
    )


def gumbel(
    scores: Tensor,
    mask: Tensor,
    *,
    rank_weights: Tensor,
    item_values: Tensor,
    keep: Tensor,
    add: Tensor,
    num_swaps: int,
    num_samples: int,
    seed: Tensor,
) -> GumbelResult:
    """Estimate for scores (query, item) and a reward as gradients/gumbel.py has it: rank weights (term, position), others
    (term, query, item).

    ``num_swaps`` < items is the last rank at which rank weights change, ``seed`` an int64 tensor of one element on the device.
    """
    num_queries, num_items = scores.shape
    scores, mask = scores.detach().float().contiguous(), mask.contiguous()
    rank_weights, item_values, keep, add = (
        part.float().contiguous() for part in (rank_weights, item_values, keep, add)
    )
    depth = num_swaps + 1
    shape = (num_queries, num_samples, depth)
    rankings = torch.empty(shape, dtype=torch.int32, device=scores.device)
    pairs = torch.empty(shape, dtype=torch.int64, device=scores.device)
    noisy = scores.new_empty(shape)
    slopes = scores.new_empty(num_queries, num_samples, num_items)
    utility = scores.new_empty(num_queries, num_samples)
    gradient = torch.empty_like(scores)
    if gradient.numel() == 0:
        return GumbelResult(gradient, utility.new_zeros(num_queries), rankings, noisy)
    block = max(16, triton.next_power_of_2(num_items))
    with torch.cuda.device_of(scores):
        gumbel_kernel[(num_queries, num_samples)](
            scores, mask, rank_weights, item_values, keep, add, seed, rankings, pairs, noisy, slopes, utility,
            num_items, len(rank_weights), rank_weights.shape[1], num_swaps,
            ITEMS=block, POSITIONS=min(block, max(16, triton.next_power_of_2(depth))), num_warps=min(16, max(1, block // 256)),
        )  # fmt: skip
        gradient_kernel[(num_queries, triton.cdiv(num_items, _ITEMS))](
            slopes, torch.full_like(utility, 1 / num_samples), gradient, num_items, num_samples, ITEMS=_ITEMS, num_warps=1
        )  # fmt: skip
    return GumbelResult(gradient, utility.mean(1), rankings, noisy)


@triton.jit(do_not_specialize=["num_items", "num_terms", "num_weights", "num_swaps"])
def gumbel_kernel(
    scores, mask, rank_weights, item_values, keep, add, seed, rankings, pairs, noisy, slopes, utility,
    num_items, num_terms, num_weights, num_swaps, ITEMS: tl.constexpr, POSITIONS: tl.constexpr,
):  # fmt: skip
    """One draw: its ranking, its noisy scores, and what it adds to gradient and utility."""
    query = tl.program_id(0)
    sample = tl.program_id(1)
    depth = num_swaps + 1
    own = query.to(tl.int64) * tl.num_programs(1) + sample
    rankings += own * depth
    pairs += own * depth
    noisy += own * depth
    items = tl.arange(0, ITEMS)
    row = query.to(tl.int64) * num_items
    is_item = tl.load(mask + row + items, mask=items < num_items, other=0) != 0
    s = tl.load(scores + row + items, mask=is_item, other=float("-inf"))
    length = tl.sum(is_item.to(tl.int32), 0)
    s -= tl.where(length > 0, tl.max(s, 0), 0.0)
    pair = sortable(s - tl.log(exponential_draws(tl.load(seed), query, sample, items)), is_item, items, ITEMS)
    best = tl.topk(pair, POSITIONS)
    positions = tl.arange(0, POSITIONS)
    is_kept = positions < depth
    bits = (best // ITEMS).to(tl.int32)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.float32, bitcast=True)
    tl.store(rankings + positions, (ITEMS - 1 - (best & (ITEMS - 1))).to(tl.int32), mask=is_kept)
    tl.store(pairs + positions, best, mask=is_kept)
    tl.store(noisy + positions, tl.where(positions < length, key, float("-inf")), mask=is_kept)
    # Other threads of the program read what these have written.
    tl.debug_barrier()

    gradient = tl.zeros((ITEMS,), tl.float32)
    total = 0.0
    safe = tl.where(is_item, s, 0.0)
    for term in range(num_terms):
        start = (term * tl.num_programs(0) + query).to(tl.int64) * num_items
        weights = rank_weights + term * num_weights
        value = tl.load(item_values + start + items, mask=is_item, other=0.0)
        factor = tl.full((ITEMS,), 1.0, tl.float32)  # c of the others
        factor_of_all = 1.0  # c of the ranking itself
        item = tl.load(rankings).to(tl.int64) + start
        for k in range(depth):
            here = tl.load(item_values + item)
            keep_here = tl.load(keep + item)
            add_here = tl.load(add + item)
            weight = tl.load(weights + k)
            total += weight * factor_of_all * here
            if k < num_swaps:
                after = tl.load(rankings + k + 1).to(tl.int64) + start
                # Without an item of the first k + 1, the next one moves up.
                is_above = pair >= tl.load(pairs + k)
                slope = weight - tl.load(weights + k + 1)
                other = tl.where(is_above, tl.load(item_values + after), here)
                log_rate_t = tl.minimum(safe - tl.where(is_above, tl.load(noisy + k + 1), tl.load(noisy + k)), 30.0)
                gradient += slope * factor * (value - other) * tl.exp(log_rate_t - tl.exp(log_rate_t))
                factor = tl.where(is_above, tl.load(keep + after), keep_here) * factor
                factor += tl.where(is_above, tl.load(add + after), add_here)
                item = after
            factor_of_all = keep_here * factor_of_all + add_here
    tl.store(slopes + own * num_items + items, tl.where(is_item, gradient, 0.0), mask=items < num_items)
    tl.store(utility + own, total)
