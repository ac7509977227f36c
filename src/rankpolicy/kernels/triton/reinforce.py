"""REINFORCE for Plackett-Luce policies on a GPU: draws, values of metrics and the gradient (gradients/reinforce.py).

A program draws one ranking: Gumbel noise from a counter-based generator makes keys, of which the first positions are selected by a
bitonic network on (key, item) pairs. Two more rankings per query are by score, for the control "greedy", and by label, for the ideal DCG.
What query q draws in sample s depends on the seed, q and s alone. The second kernel turns values into advantages, the third adds up.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from rankpolicy.kernels import codes
from rankpolicy.kernels.codes import GREEDY, LEAVE_ONE_OUT, MEAN
from rankpolicy.types import Conventions

MOST_ITEMS, MOST_POSITIONS = 8192, 2048  # that a program can sort, and that it is compiled for within seconds

_NO_CUTOFF = 1 << 30
_ITEMS = 128
# Triton's kernels read globals that are declared constant.
_DCG, _NDCG, _AP, _RR = (tl.constexpr(code) for code in (codes.DCG, codes.NDCG, codes.AP, codes.RR))
_P, _RECALL, _ERR = (tl.constexpr(code) for code in (codes.P, codes.RECALL, codes.ERR))
_AVG_RANK, _SUCCESS = tl.constexpr(codes.AVG_RANK), tl.constexpr(codes.SUCCESS)
_LEAVE_ONE_OUT, _MEAN, _GREEDY = tl.constexpr(LEAVE_ONE_OUT), tl.constexpr(MEAN), tl.constexpr(GREEDY)
_NO_CUTOFF_CODE = tl.constexpr(_NO_CUTOFF)


class ReinforceResult(NamedTuple):
    """Float32 arrays, and the rankings they come from."""

    gradient: Tensor  # (query, item)
    values: Tensor  # (query, term) mean value of each term
    rankings: Tensor  # (query, sample, position), int32; padding comes after all items


def reinforce(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    terms: Any,
    conventions: Conventions,
    num_samples: int,
    control: int,
    seed: Tensor,
) -> ReinforceResult:
    """Estimate dU/dscores from ``num_samples`` rankings per query of at most MOST_ITEMS items, MOST_POSITIONS of which count.

    ``terms`` is the table of metrics (metrics/expression.py), ``control`` a code of kernels/codes.py, ``seed`` an int64
    tensor of one element on the device of the scores: a CUDA graph that draws it anew draws other rankings each time.
    """
    num_queries, num_items = scores.shape
    scores, labels, mask = scores.detach().float().contiguous(), labels.float().contiguous(), mask.contiguous()
    kinds, cutoffs = (tuple(int(number) for number in column) for column in (terms.kinds, terms.cutoffs))
    table = device_table(kinds, cutoffs, tuple(float(weight) for weight in terms.weights), scores.device)
    num_terms, num_lists = len(kinds), num_samples + 2
    depth = min(num_items, max(cutoffs))
    rankings = torch.empty(num_queries, num_lists, depth, dtype=torch.int32, device=scores.device)
    values = scores.new_empty(num_queries, num_lists, num_terms)
    slopes = scores.new_empty(num_queries, num_samples, num_items)
    advantages, means = scores.new_empty(num_queries, num_samples), scores.new_empty(num_queries, num_terms)
    gradient = torch.empty_like(scores)
    if gradient.numel() == 0:
        return ReinforceResult(gradient, means.zero_(), rankings[:, :num_samples])
    block = max(16, triton.next_power_of_2(num_items))
    empty = float("nan") if conventions.empty == "skip" else float(conventions.empty)
    with torch.cuda.device_of(scores):
        draw_kernel[(num_queries, num_lists)](
            scores, labels, mask, seed, *table[:2], rankings, values, slopes,
            num_items, num_samples, num_terms, depth,
            float(conventions.relevant_from), 2.0 ** -float(conventions.max_label), empty,
            LINEAR=conventions.gain == "linear", ITEMS=block, POSITIONS=max(16, triton.next_power_of_2(depth)),
            num_warps=min(16, max(1, block // 256)),
        )  # fmt: skip
        advantage_kernel[(num_queries,)](
            values, *table, advantages, means, num_samples, num_terms, empty,
            CONTROL=control, SAMPLES=triton.next_power_of_2(num_samples), num_warps=1,
        )  # fmt: skip
        gradient_kernel[(num_queries, triton.cdiv(num_items, _ITEMS))](
            slopes, advantages, gradient, num_items, num_samples, ITEMS=_ITEMS, num_warps=1
        )
    return ReinforceResult(gradient, means, rankings[:, :num_samples])


@lru_cache(maxsize=64)
def device_table(
    kinds: tuple[int, ...], cutoffs: tuple[int, ...], weights: tuple[float, ...], device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """The columns of a table of metrics, copied to the device once: a copy cannot be part of a CUDA graph."""
    reachable = [min(cutoff, _NO_CUTOFF) for cutoff in cutoffs]
    return (
        torch.tensor(kinds, dtype=torch.int32, device=device),
        torch.tensor(reachable, dtype=torch.int32, device=device),
        torch.tensor(weights, dtype=torch.float32, device=device),
    )


@triton.jit(do_not_specialize=["num_items", "num_samples", "num_terms", "depth"])
def draw_kernel(
    scores, labels, mask, seed, kinds, cutoffs, rankings, values, slopes,
    num_items, num_samples, num_terms, depth, relevant_from, stop_scale, empty,
    LINEAR: tl.constexpr, ITEMS: tl.constexpr, POSITIONS: tl.constexpr,
):  # fmt: skip
    """One ranking: its items, the values of the metrics (NDCG not divided yet) and, for a sample, dlog P/dscores (item,).

    Lists past the samples are by score and by label.
    """
    query = tl.program_id(0)
    sample = tl.program_id(1)
    row = query.to(tl.int64) * num_items
    ranking_row = query.to(tl.int64) * (num_samples + 2) + sample
    items = tl.arange(0, ITEMS)
    is_item = tl.load(mask + row + items, mask=items < num_items, other=0) != 0
    s = tl.load(scores + row + items, mask=is_item, other=float("-inf"))
    label = tl.load(labels + row + items, mask=is_item, other=0.0)
    length = tl.sum(is_item.to(tl.int32), 0)
    highest = tl.max(s, 0)
    highest = tl.where(length > 0, highest, 0.0)
    key = s - highest
    if sample < num_samples:
        key -= tl.log(exponential_draws(tl.load(seed), query, sample, items))
    elif sample > num_samples:
        key = label
    pairs = sortable(key, is_item, items, ITEMS)
    best = tl.topk(pairs, POSITIONS)

    positions = tl.arange(0, POSITIONS)
    ranked = (ITEMS - 1 - (best & (ITEMS - 1))).to(tl.int32)
    tl.store(rankings + ranking_row * depth + positions, ranked, mask=positions < depth)
    reach = tl.minimum(length, depth)
    is_placed = positions < reach
    ranked_label = tl.load(labels + row + ranked, mask=is_placed, other=0.0)
    num_relevant = tl.sum((is_item & (label >= relevant_from)).to(tl.float32), 0)
    has_gain = tl.max(label, 0) > 0
    for t in range(num_terms):
        value = metric_value(
            tl.load(kinds + t), tl.load(cutoffs + t), ranked_label, is_placed, positions, length, num_relevant, has_gain,
            relevant_from, stop_scale, empty, LINEAR,
        )  # fmt: skip
        tl.store(values + ranking_row * num_terms + t, value)

    if sample < num_samples:
        # Items whose pair is below that of the last position are not placed.
        last_pair = tl.min(tl.where(is_placed, best, 0x7FFFFFFFFFFFFFFF), 0)
        is_left = is_item & (pairs < last_pair)
        left = tl.where(is_left, s - highest, float("-inf"))
        log_left = log_sum_of_exp(left)
        log_weight = tl.load(scores + row + ranked, mask=is_placed, other=float("-inf")) - highest
        # The weight of the last items ranked and of all that are left; then, over positions, the sum of its inverses.
        log_remaining = log_add_exp(tl.associative_scan(log_weight, 0, log_add_exp, reverse=True), log_left)
        log_inverse = tl.associative_scan(tl.where(is_placed, -log_remaining, float("-inf")), 0, log_add_exp)
        slope = tl.where(is_placed, 1.0 - tl.exp(log_weight + log_inverse), 0.0)
        log_whole = tl.max(tl.where(is_placed, log_inverse, float("-inf")), 0)
        own = slopes + (query.to(tl.int64) * num_samples + sample) * num_items
        tl.store(
            own + items,
            tl.where(is_left, -tl.exp(left + log_whole), 0.0),
            mask=(items < num_items) & (is_left | ~is_item),
        )
        tl.store(own + ranked, slope, mask=is_placed)


@triton.jit
def exponential_draws(seed, query, sample, items):
    """Standard exponential numbers (item,), none of them 0; those near 0, which win races, keep all their digits."""
    bits, _, _, _ = tl.philox(seed, items, sample, query, 0)
    u = tl.minimum((bits.to(tl.float32) + 0.5) * 2.3283064365386963e-10, 1.0 - 5.9604644775390625e-08)
    small = tl.minimum(u, 0.1)
    series = small * (
        1 + small * (0.5 + small * (1 / 3 + small * (0.25 + small * (0.2 + small * (1 / 6 + small / 7)))))
    )
    return tl.where(u < 0.1, series, -tl.log(1.0 - u))


@triton.jit
def sortable(key, is_item, items, ITEMS: tl.constexpr):
    """Whole numbers that descend with the key, equal keys in item order, padding last."""
    bits = (key + 0.0).to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    return tl.where(is_item, ordered, -0x80000000) * ITEMS + (ITEMS - 1 - items)


@triton.jit
def log_add_exp(a, b):
    """log(e^a + e^b), -inf for two of these."""
    high = tl.maximum(a, b)
    return tl.where(high == float("-inf"), high, high + tl.log(tl.exp(a - high) + tl.exp(b - high)))


@triton.jit
def log_sum_of_exp(x):
    """log Σ e^x, -inf without finite numbers."""
    high = tl.max(x, 0)
    safe = tl.where(high == float("-inf"), 0.0, high)
    return tl.log(tl.sum(tl.exp(x - safe), 0)) + safe


@triton.jit
def metric_value(
    kind, cutoff, label, is_placed, positions, length, num_relevant, has_gain, relevant_from, stop_scale, empty,
    LINEAR: tl.constexpr,
):  # fmt: skip
    """The value of one metric for the labels (position,) of a ranking, as in kernels/metrics/values.py; that of NDCG is its DCG."""
    reach = tl.minimum(length, cutoff)
    is_counted = is_placed & (positions < cutoff)
    rank = (positions + 1).to(tl.float32)
    is_hit = is_counted & (label >= relevant_from)
    hit = is_hit.to(tl.float32)
    exp2_gain = tl.where(is_counted, tl.exp2(label) - 1.0, 0.0)
    value = 0.0
    is_empty = num_relevant == 0.0
    divisor = tl.maximum(num_relevant, 1.0)
    if (kind == _DCG) | (kind == _NDCG):
        gain = exp2_gain
        if LINEAR:
            gain = tl.where(is_counted, label, 0.0)
        value = tl.sum(gain / tl.log2(rank + 1.0), 0)
        is_empty = (kind == _DCG) & (has_gain == 0)
    elif kind == _AP:
        value = tl.sum(hit * tl.cumsum(hit, 0) / rank, 0) / divisor
    elif kind == _RR:
        value = tl.max(hit / rank, 0)
    elif kind == _P:
        value = tl.sum(hit, 0) / tl.where(cutoff == _NO_CUTOFF_CODE, length, cutoff).to(tl.float32)
    elif kind == _RECALL:
        value = tl.sum(hit, 0) / divisor
    elif kind == _ERR:
        stop = exp2_gain * stop_scale
        going_on = 1.0 - stop
        # The probability that the user gets to a rank: all earlier ranks are passed.
        passed = tl.associative_scan(going_on, 0, times)
        reaching = tl.where(going_on > 0.0, passed / tl.where(going_on > 0.0, going_on, 1.0), 0.0)
        value = tl.sum(reaching * stop / rank, 0)
        is_empty = has_gain == 0
    elif kind == _AVG_RANK:
        value = tl.sum(hit * (positions - reach).to(tl.float32), 0) / divisor + reach.to(tl.float32) + 1.0
    elif kind == _SUCCESS:
        value = tl.max(hit, 0)
    return tl.where(is_empty, tl.where(kind == _DCG, empty * 0.0, empty), value)


@triton.jit
def times(a, b):
    """a * b"""
    return a * b


@triton.jit(do_not_specialize=["num_samples", "num_terms"])
def advantage_kernel(
    values, kinds, cutoffs, weights, advantages, means, num_samples, num_terms, empty,
    CONTROL: tl.constexpr, SAMPLES: tl.constexpr,
):  # fmt: skip
    """Advantages (query, sample) over the number of samples, and the mean values of the metrics (query, term)."""
    query = tl.program_id(0).to(tl.int64)
    samples = tl.arange(0, SAMPLES)
    is_sample = samples < num_samples
    lists = values + query * (num_samples + 2) * num_terms
    rewards = tl.zeros((SAMPLES,), tl.float32)
    greedy = 0.0
    for t in range(num_terms):
        value = tl.load(lists + samples * num_terms + t, mask=is_sample, other=0.0)
        by_score = tl.load(lists + num_samples * num_terms + t)
        if tl.load(kinds + t) == _NDCG:
            ideal = tl.load(lists + (num_samples + 1) * num_terms + t)
            divisor = tl.where(ideal > 0.0, ideal, 1.0)
            value = tl.where(ideal > 0.0, value / divisor, empty)
            by_score = tl.where(ideal > 0.0, by_score / divisor, empty)
        tl.store(means + query * num_terms + t, tl.sum(tl.where(is_sample, value, 0.0), 0) / num_samples)
        weight = tl.load(weights + t)
        rewards += weight * value
        greedy += weight * by_score
    # Relative to the first reward, so that equal rewards have the advantage 0 and not a rounding error.
    first = tl.sum(tl.where(samples == 0, rewards, 0.0), 0)
    rewards -= first
    greedy -= first
    mean = tl.sum(tl.where(is_sample, rewards, 0.0), 0) / num_samples
    advantage = rewards + first
    if CONTROL == _LEAVE_ONE_OUT:
        advantage = (rewards - mean) * (num_samples / (num_samples - 1.0))
    elif CONTROL == _MEAN:
        advantage = rewards - mean
    elif CONTROL == _GREEDY:
        advantage = rewards - greedy
    # A query that is left out of means has the reward NaN, and nothing to learn from.
    advantage = tl.where(advantage == advantage, advantage, 0.0) / num_samples
    tl.store(advantages + query * num_samples + samples, advantage, mask=is_sample)


@triton.jit(do_not_specialize=["num_items", "num_samples"])
def gradient_kernel(slopes, advantages, gradient, num_items, num_samples, ITEMS: tl.constexpr):
    """Sum over samples of advantage times dlog P/dscores, in the order of samples."""
    query = tl.program_id(0).to(tl.int64)
    items = tl.program_id(1) * ITEMS + tl.arange(0, ITEMS)
    total = tl.zeros((ITEMS,), tl.float32)
    for sample in range(num_samples):
        row = query * num_samples + sample
        slope = tl.load(slopes + row * num_items + items, mask=items < num_items, other=0.0)
        total += tl.load(advantages + row) * slope
    tl.store(gradient + query * num_items + items, total, mask=items < num_items)
