"""What both race kernels compute of a query and of one item."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def query_range(scores, mask, num_items, ITEMS: tl.constexpr):
    """Items up to the last real one, highest and lowest score, and the sum of rates relative to the highest; 0, 0, 0, 1 without items."""
    offsets = tl.arange(0, ITEMS)
    length = 0
    highest = float("-inf")
    lowest = float("inf")
    for start in range(0, num_items, ITEMS):
        items = start + offsets
        is_item = tl.load(mask + items, mask=items < num_items, other=0) != 0
        s = tl.load(scores + items, mask=is_item, other=0.0)
        length = tl.maximum(length, tl.max(tl.where(is_item, items + 1, 0), 0))
        highest = tl.maximum(highest, tl.max(tl.where(is_item, s, float("-inf")), 0))
        lowest = tl.minimum(lowest, tl.min(tl.where(is_item, s, float("inf")), 0))
    highest = tl.where(length > 0, highest, 0.0)
    lowest = tl.where(length > 0, lowest, 0.0)
    sum_of_rates = 0.0
    for start in range(0, length, ITEMS):
        items = start + offsets
        is_item = tl.load(mask + items, mask=items < length, other=0) != 0
        s = tl.load(scores + items, mask=is_item, other=float("-inf"))
        sum_of_rates += tl.sum(tl.exp(s - highest), 0)
    return length, highest, lowest, tl.where(length > 0, sum_of_rates, 1.0)


@triton.jit
def nodes_of_query(
    scores, mask, weights, early, num_items, is_first_program,
    STEP: tl.constexpr, BEFORE: tl.constexpr, AFTER: tl.constexpr, NODES: tl.constexpr, ITEMS: tl.constexpr,
):  # fmt: skip
    """Items up to the last real one, highest score, number of the first node, and how many blocks of nodes there are.

    The first program of the query writes the factor of the part before the first node, and the highest score, to ``early`` (2,).
    """
    length, highest, lowest, sum_of_rates = query_range(scores, mask, num_items, ITEMS)
    first = tl.floor((-tl.log(sum_of_rates) - BEFORE) / STEP).to(tl.int32)
    last = tl.ceil((AFTER - (lowest - highest)) / STEP).to(tl.int32)
    if is_first_program:
        # Before the first node at most one item has arrived: there the integrand is λ_i t θ_1, a geometric series over nodes.
        growth = tl.exp(tl.full((), STEP, tl.float32)) - 1.0
        tl.store(early, STEP * tl.exp(first.to(tl.float32) * STEP) / growth * tl.load(weights))
        tl.store(early + 1, highest)
    return length, highest, first, tl.where(length > 0, (last - first) // NODES + 1, 0)


@triton.jit
def log_times(node, highest, STEP: tl.constexpr, NODES: tl.constexpr):
    """log t less the highest score at a block of nodes (node,): in float64, for s + log t is near 0 where both may be thousands."""
    return (node + tl.arange(0, NODES)).to(tl.float64) * STEP - highest.to(tl.float64)


@triton.jit
def arrivals_at(x, scores, mask, length, highest, AFTER: tl.constexpr, ITEMS: tl.constexpr):
    """Where the next item not long past log t = x is due (infinity without one), the expected number of arrivals by then, and the number of
    items long past, which have arrived for certain."""
    nearest = float("inf")
    expected = 0.0
    num_past = 0
    for start in range(0, length, ITEMS):
        items = start + tl.arange(0, ITEMS)
        is_item = tl.load(mask + items, mask=items < length, other=0) != 0
        s = tl.load(scores + items, mask=is_item, other=float("-inf"))
        due = highest - s
        nearest = tl.minimum(nearest, tl.min(tl.where(due >= x - AFTER, due, float("inf")), 0))
        expected += tl.sum(1.0 - tl.exp(-tl.exp(tl.minimum(x - due, 30.0))), 0)
        num_past += tl.sum((due < x - AFTER).to(tl.int32), 0)
    return nearest, expected, num_past


@triton.jit
def block_after(
    block, num_chunks, num_blocks, first, scores, mask, length, highest, cutoff,
    STEP: tl.constexpr, BEFORE: tl.constexpr, AFTER: tl.constexpr, NODES: tl.constexpr, ITEMS: tl.constexpr,
):  # fmt: skip
    """The next block of nodes of a program, and whether this one adds anything and is to be integrated."""
    x_first = (first + block * NODES).to(tl.float32) * STEP
    x_last = x_first + (NODES - 1) * STEP
    nearest, expected, num_past = arrivals_at(x_first, scores, mask, length, highest, AFTER, ITEMS)
    # P[fewer than cutoff arrivals] <= e^-expected (e expected / cutoff)^cutoff: once it vanishes, later nodes add nothing.
    ratio = tl.maximum(expected / cutoff, 1.0)
    is_over = (cutoff * (ratio - 1.0 - tl.log(ratio)) > 2 * BEFORE) | (nearest == float("inf")) | (num_past >= cutoff)
    # Where no item is due for a while: on to the first block of this program that is near the next one.
    is_early = nearest > x_last + 2 * BEFORE
    reached = (
        tl.floor((tl.where(is_early & (is_over == 0), nearest, 0.0) - 2 * BEFORE) / STEP).to(tl.int32) - first
    ) // NODES
    rounds = tl.where(is_early, tl.maximum((reached - block + num_chunks - 1) // num_chunks, 1), 1)
    return tl.where(is_over, num_blocks, block + rounds * num_chunks), (is_over == 0) & (is_early == 0)


@triton.jit
def add_to(place, value, num_visited):
    """A program's first block of nodes writes, without waiting for a read; later ones add."""
    tl.store(place, value + tl.load(place, mask=num_visited > 0, other=0.0))


@triton.jit
def coins(s, is_item, x):
    """λt, e^{-λt} and 1 - e^{-λt} of one item at nodes ``x`` (node,), log t less the highest score; padding never arrives."""
    # Past 30 λt is infinite for all purposes.
    log_rate_t = tl.minimum((s.to(tl.float64) + x).to(tl.float32), 30.0)
    rate_t = tl.where(is_item, tl.exp(log_rate_t), 0.0)
    still = tl.exp(-rate_t)
    # 1 - e^-y loses all digits of a small y; its series does not.
    y = tl.minimum(rate_t, 0.5)
    series = y * (1 - y / 2 * (1 - y / 3 * (1 - y / 4 * (1 - y / 5 * (1 - y / 6 * (1 - y / 7 * (1 - y / 8)))))))
    return rate_t, still, tl.where(rate_t < 0.5, series, 1.0 - still)
