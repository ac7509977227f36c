"""PL-Rank on a GPU (gradients/pl_rank.py is the specification).

A program takes one ranking of one query: noise from a counter-based generator, a bitonic network for the first positions, and one pass over
these from the last to the first, for all items at once. What query q draws in sample s depends on the seed, q and s alone; a second kernel
adds up the samples in their order.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from rankpolicy.kernels.triton.reinforce import (
    exponential_draws,
    gradient_kernel,
    log_add_exp,
    log_sum_of_exp,
    sortable,
)

_ITEMS = 128


class PLRankResult(NamedTuple):
    """Float32 arrays, and the rankings they come from."""

    gradient: Tensor  # (query, item)
    utility: Tensor  # (query,) mean reward
    rankings: Tensor  # (query, sample, position), int32; padding comes after all items


def pl_rank(
    scores: Tensor, mask: Tensor, *, rank_weights: Tensor, item_values: Tensor, num_samples: int, seed: Tensor
) -> PLRankResult:
    """Estimate for scores (query, item), rank weights (term, position) up to the last that is not 0, and item values (term, query, item).

    ``seed`` is an int64 tensor of one element on the device.
    """
    num_queries, num_items = scores.shape
    scores, mask = scores.detach().float().contiguous(), mask.contiguous()
    rank_weights, item_values = rank_weights.float().contiguous(), item_values.float().contiguous()
    num_terms, depth = rank_weights.shape
    rankings = torch.empty(num_queries, num_samples, depth, dtype=torch.int32, device=scores.device)
    pairs = torch.empty(rankings.shape, dtype=torch.int64, device=scores.device)
    slopes = scores.new_empty(num_queries, num_samples, num_items)
    utility = scores.new_empty(num_queries, num_samples)
    gradient = torch.empty_like(scores)
    if gradient.numel() == 0:
        return PLRankResult(gradient, utility.new_zeros(num_queries), rankings)
    block = max(16, triton.next_power_of_2(num_items))
    with torch.cuda.device_of(scores):
        pl_rank_kernel[(num_queries, num_samples)](
            scores, mask, rank_weights, item_values, seed, rankings, pairs, slopes, utility, num_items, num_terms, depth,
            ITEMS=block, POSITIONS=min(block, max(16, triton.next_power_of_2(depth))), num_warps=min(16, max(1, block // 256)),
        )  # fmt: skip
        gradient_kernel[(num_queries, triton.cdiv(num_items, _ITEMS))](
            slopes, torch.full_like(utility, 1 / num_samples), gradient, num_items, num_samples, ITEMS=_ITEMS, num_warps=1
        )  # fmt: skip
    return PLRankResult(gradient, utility.mean(1), rankings)


@triton.jit(do_not_specialize=["num_items", "num_terms", "depth"])
def pl_rank_kernel(
    scores, mask, rank_weights, item_values, seed, rankings, pairs, slopes, utility,
    num_items, num_terms, depth, ITEMS: tl.constexpr, POSITIONS: tl.constexpr,
):  # fmt: skip
    """One ranking, and what it adds to gradient and utility."""
    query = tl.program_id(0)
    sample = tl.program_id(1)
    own = query.to(tl.int64) * tl.num_programs(1) + sample
    rankings += own * depth
    pairs += own * depth
    items = tl.arange(0, ITEMS)
    row = query.to(tl.int64) * num_items
    is_item = tl.load(mask + row + items, mask=items < num_items, other=0) != 0
    s = tl.load(scores + row + items, mask=is_item, other=float("-inf"))
    length = tl.sum(is_item.to(tl.int32), 0)
    highest = tl.where(length > 0, tl.max(s, 0), 0.0)
    s -= highest
    pair = sortable(s - tl.log(exponential_draws(tl.load(seed), query, sample, items)), is_item, items, ITEMS)
    best = tl.topk(pair, POSITIONS)
    positions = tl.arange(0, POSITIONS)
    tl.store(rankings + positions, (ITEMS - 1 - (best & (ITEMS - 1))).to(tl.int32), mask=positions < depth)
    tl.store(pairs + positions, best, mask=positions < depth)
    # Other threads of the program read what these have written.
    tl.debug_barrier()

    reach = tl.minimum(length, depth)
    last_pair = tl.min(tl.where(positions < reach, best, 0x7FFFFFFFFFFFFFFF), 0)
    log_left = log_sum_of_exp(tl.where(is_item & (pair < last_pair), s, float("-inf")))
    gradient = tl.zeros((ITEMS,), tl.float32)
    total = 0.0
    for term in range(num_terms):
        start = (term * tl.num_programs(0) + query).to(tl.int64) * num_items
        value = tl.load(item_values + start + items, mask=is_item, other=0.0)
        placed_from = 0.0  # PR
        log_remaining = log_left  # log Z
        for back in range(reach):
            k = reach - 1 - back
            item = tl.load(rankings + k)
            own_pair = tl.load(pairs + k)
            weight = tl.load(rank_weights + term * depth + k)
            log_remaining = log_add_exp(log_remaining, tl.load(scores + row + item) - highest)
            share = tl.where(pair <= own_pair, tl.exp(s - log_remaining), 0.0)
            gradient += tl.where(pair == own_pair, placed_from, 0.0)
            placed_from += weight * tl.load(item_values + start + item)
            gradient += (weight * value - placed_from) * share
        total += placed_from
    tl.store(slopes + own * num_items + items, tl.where(is_item, gradient, 0.0), mask=items < num_items)
    tl.store(utility + own, total)
