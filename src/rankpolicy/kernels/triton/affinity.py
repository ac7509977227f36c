"""REINFORCE for affinity policies on a GPU: draws, values of metrics and the gradient (gradients/affinity_reinforce.py).

A program draws one list: a race by affinity and a shuffle by chance from a counter-based generator, and at each position the first
item left of one of them. Two more lists per query are by score, for the control "greedy", and by label, for the ideal DCG. What query q
draws in sample s depends on the seed, q and s alone. Advantages and sums over samples are those of kernels/triton/reinforce.py.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import logsigmoid

from rankpolicy.kernels.metrics import codes
from rankpolicy.kernels.triton.reinforce import (
    MOST_ITEMS,
    MOST_POSITIONS,
    ReinforceResult,
    advantage_kernel,
    device_table,
    exponential_draws,
    gradient_kernel,
    log_add_exp,
    log_sum_of_exp,
    metric_value,
    sortable,
)
from rankpolicy.types import Conventions

_ITEMS = 128


def affinity_reinforce(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    epsilons: Tensor,
    terms: Any,
    conventions: Conventions,
    max_positions: int | None,
    num_samples: int,
    control: int,
    seed: Tensor,
) -> ReinforceResult:
    """Estimate dU/dscores from ``num_samples`` lists per query; limits and arguments are those of ``reinforce``.

    ``epsilons`` (query,) are the shares of choices by chance.
    """
    num_queries, num_items = scores.shape
    scores, labels, mask = scores.detach().float().contiguous(), labels.float().contiguous(), mask.contiguous()
    log_affinities, epsilons = logsigmoid(scores), epsilons.float().contiguous()
    kinds, cutoffs = (tuple(int(number) for number in column) for column in (terms.kinds, terms.cutoffs))
    table = device_table(kinds, cutoffs, tuple(float(weight) for weight in terms.weights), scores.device)
    num_terms, num_lists = len(kinds), num_samples + 2
    depth, width = list_lengths(num_items, terms, max_positions)
    rankings = torch.empty(num_queries, num_lists, width, dtype=torch.int32, device=scores.device)
    values = scores.new_empty(num_queries, num_lists, num_terms)
    slopes = scores.new_empty(num_queries, num_samples, num_items)
    advantages, means = scores.new_empty(num_queries, num_samples), scores.new_empty(num_queries, num_terms)
    gradient = torch.empty_like(scores)
    if gradient.numel() == 0:
        return ReinforceResult(gradient, means.zero_(), rankings[:, :num_samples, :depth])
    block = max(16, triton.next_power_of_2(num_items))
    empty = float("nan") if conventions.empty == "skip" else float(conventions.empty)
    with torch.cuda.device_of(scores):
        affinity_kernel[(num_queries, num_lists)](
            scores, log_affinities, labels, mask, epsilons, seed, *table[:2], rankings, values, slopes,
            num_items, num_samples, num_terms, depth, width,
            float(conventions.relevant_from), 2.0 ** -float(conventions.max_label), empty,
            LINEAR=conventions.gain == "linear", ITEMS=block, POSITIONS=max(16, triton.next_power_of_2(width)),
            num_warps=min(16, max(1, block // 256)),
        )  # fmt: skip
        advantage_kernel[(num_queries,)](
            values, *table, advantages, means, num_samples, num_terms, empty,
            CONTROL=control, SAMPLES=triton.next_power_of_2(num_samples), num_warps=1,
        )  # fmt: skip
        gradient_kernel[(num_queries, triton.cdiv(num_items, _ITEMS))](
            slopes, advantages, gradient, num_items, num_samples, ITEMS=_ITEMS, num_warps=1
        )
    # dlog sigmoid(s) / ds = sigmoid(-s)
    return ReinforceResult(gradient * torch.sigmoid(-scores), means, rankings[:, :num_samples, :depth])


def list_lengths(num_items: int, terms: Any, max_positions: int | None) -> tuple[int, int]:
    """How many positions of a list count, and how many the longest list of a query has: the ideal DCG knows no ``max_positions``."""
    cutoffs = [int(cutoff) for cutoff in terms.cutoffs]
    ideal = [cutoff for kind, cutoff in zip(terms.kinds, cutoffs, strict=True) if int(kind) == codes.NDCG]
    depth = min(num_items, max(cutoffs), max_positions or num_items)
    return depth, max(depth, min(num_items, max(ideal, default=0)))


def fits(num_items: int, terms: Any, max_positions: int | None) -> bool:
    """Whether the kernel can place this many items and positions."""
    return num_items <= MOST_ITEMS and list_lengths(num_items, terms, max_positions)[1] <= MOST_POSITIONS


@triton.jit
def random_word(seed, first, second, third, fourth):
    """32 random bits of a counter."""
    word, _, _, _ = tl.philox(seed, first, second, third, fourth)
    return word


@triton.jit(do_not_specialize=["num_items", "num_samples", "num_terms", "depth", "width"])
def affinity_kernel(
    scores, log_affinities, labels, mask, epsilons, seed, kinds, cutoffs, rankings, values, slopes,
    num_items, num_samples, num_terms, depth, width, relevant_from, stop_scale, empty,
    LINEAR: tl.constexpr, ITEMS: tl.constexpr, POSITIONS: tl.constexpr,
):  # fmt: skip
    """One list: its items, the values of the metrics (NDCG not divided yet) and, for a sample, dlog P/dlog affinities (item,).

    Lists past the samples are by score and by label.
    """
    query = tl.program_id(0)
    sample = tl.program_id(1)
    row = query.to(tl.int64) * num_items
    list_row = query.to(tl.int64) * (num_samples + 2) + sample
    rankings += list_row * width
    own_depth = tl.where(sample > num_samples, width, depth)
    items = tl.arange(0, ITEMS)
    is_item = tl.load(mask + row + items, mask=items < num_items, other=0) != 0
    label = tl.load(labels + row + items, mask=is_item, other=0.0)
    log_weight = tl.load(log_affinities + row + items, mask=is_item, other=float("-inf"))
    length = tl.sum(is_item.to(tl.int32), 0)
    reach = tl.minimum(length, own_depth)
    highest = tl.where(length > 0, tl.max(log_weight, 0), 0.0)
    epsilon = tl.load(epsilons + query)
    key = tl.load(scores + row + items, mask=is_item, other=float("-inf"))
    if sample < num_samples:
        key = log_weight - highest - tl.log(exponential_draws(tl.load(seed), query, sample, items))
    elif sample > num_samples:
        key = label
    pairs = sortable(key, is_item, items, ITEMS)
    positions = tl.arange(0, POSITIONS)
    is_placed = positions < reach
    # Whether an item is not in the list: then it takes part in every choice.
    is_open = is_item
    if (sample < num_samples) & (epsilon > 0.0):
        shuffle = random_word(tl.load(seed), items, sample, query, 1).to(tl.int64) * ITEMS + (ITEMS - 1 - items)
        for k in range(reach):
            word = random_word(tl.load(seed), tl.cast(k, tl.int32), sample, query, 2)
            is_by_chance = (
                tl.minimum(word.to(tl.float32) * 2.3283064365386963e-10, 1.0 - 5.9604644775390625e-08) < epsilon
            )
            candidates = tl.where(is_by_chance, shuffle, pairs)
            best = tl.max(tl.where(is_open, candidates, -0x7FFFFFFFFFFFFFFF), 0)
            item = (ITEMS - 1 - (best & (ITEMS - 1))).to(tl.int32)
            is_open = is_open & (items != item)
            tl.store(rankings + k, item)
        # Padding fills up short lists.
        is_padding = (items < num_items) & ~is_item
        after = length + tl.cumsum(is_padding.to(tl.int32), 0) - 1
        tl.store(rankings + after, items, mask=is_padding & (after < depth))
    else:
        best = tl.topk(pairs, POSITIONS)
        ranked_items = (ITEMS - 1 - (best & (ITEMS - 1))).to(tl.int32)
        tl.store(rankings + positions, ranked_items, mask=positions < own_depth)
        last_pair = tl.min(tl.where(is_placed, best, 0x7FFFFFFFFFFFFFFF), 0)
        is_open = is_item & (pairs < last_pair)
    # Other threads of the program read what these have written.
    tl.debug_barrier()
    ranked = tl.load(rankings + positions, mask=is_placed, other=0)
    ranked_label = tl.load(labels + row + ranked, mask=is_placed, other=0.0)
    num_relevant = tl.sum((is_item & (label >= relevant_from)).to(tl.float32), 0)
    has_gain = tl.max(label, 0) > 0
    for t in range(num_terms):
        value = metric_value(
            tl.load(kinds + t), tl.load(cutoffs + t), ranked_label, is_placed, positions, length, num_relevant, has_gain,
            relevant_from, stop_scale, empty, LINEAR,
        )  # fmt: skip
        tl.store(values + list_row * num_terms + t, value)

    if sample < num_samples:
        # In float64: log weights may be in the thousands, and what is left of their differences decides.
        left = tl.where(is_open, log_weight.to(tl.float64) - highest, float("-inf"))
        placed_weight = (
            tl.load(log_affinities + row + ranked, mask=is_placed, other=float("-inf")).to(tl.float64) - highest
        )
        # The weight of the last items placed and of all that are left.
        log_remaining = log_add_exp(
            tl.associative_scan(placed_weight, 0, log_add_exp, reverse=True), log_sum_of_exp(left)
        )
        # The share of each choice's probability that depends on weights.
        log_by_weight = tl.log(1.0 - epsilon) + placed_weight - log_remaining
        log_by_chance = tl.log(epsilon / tl.maximum(length - positions, 1).to(tl.float64))
        log_share = tl.where(epsilon > 0.0, log_by_weight - log_add_exp(log_by_weight, log_by_chance), 0.0)
        log_share = tl.where(is_placed, log_share, float("-inf"))
        log_inverse = tl.associative_scan(tl.where(is_placed, log_share - log_remaining, float("-inf")), 0, log_add_exp)
        slope = tl.where(is_placed, tl.exp(log_share) - tl.exp(placed_weight + log_inverse), 0.0)
        log_whole = tl.max(tl.where(is_placed, log_inverse, float("-inf")), 0)
        own = slopes + (query.to(tl.int64) * num_samples + sample) * num_items
        tl.store(
            own + items,
            tl.where(is_open, -tl.exp(left + log_whole), 0.0),
            mask=(items < num_items) & (is_open | ~is_item),
        )
        tl.store(own + ranked, slope, mask=is_placed)
