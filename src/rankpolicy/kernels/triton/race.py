"""Exposure of a Plackett-Luce policy and the gradient of any function of it, on a GPU: the recursions of kernels/plackett_luce/race.py.

A program takes one query and every num_chunks-th block of its nodes. The states F, H, V and U are blocks (node, count) in registers; a
shift by one count is a gather within a warp. F and H of every item go to scratch memory on the way forwards and come back on the way
backwards, two items ahead of their use. (Where there are more counts than a warp can gather well, the shifted state is read from scratch
memory.) Each program adds into rows of its own, which a second kernel sums in a fixed order: results
do not depend on how programs are scheduled. Nothing here waits for the device, so that a CUDA graph can hold it.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

_SCRATCH_BYTES = 1 << 31  # queries are taken in parts that need no more scratch than this
_USUAL_SPREAD = 20.0  # between the highest and the lowest score of a query; wider ones take more rounds per program
_MOST_CHUNKS = 64
_STATE = 128  # numbers in a (node, count) block: four registers of a warp
_MOST_GATHERED = 256  # counts up to which a shift is a gather: its shuffles grow with the square of the counts
_FEW_WEIGHTS = 16  # not worth a look whether they end with zeros
_ITEMS = 256  # items read at once where their order does not matter


class RaceResult(NamedTuple):
    """Arrays (query, item), float32."""

    exposure: Tensor
    gradient: Tensor  # dΦ/dscores
    curvature: Tensor  # dexposure_i/dscores_i


class _Shape(NamedTuple):
    """How a launch is cut up."""

    counts: int  # rank weights, rounded up to a power of two
    nodes: int  # nodes that a program integrates at once
    num_chunks: int  # programs per query
    num_warps: int
    num_queries: int  # queries per launch


def race(
    scores: Tensor,
    mask: Tensor,
    rank_weights: Tensor,
    coefficients: Tensor,
    *,
    quadrature: Any,
    up_to: Literal["exposure", "gradient", "curvature"] = "curvature",
) -> RaceResult:
    """Exposure for rank weights θ (position,) and dΦ/dscores for ``coefficients`` dΦ/dexposure (query, item).

    What comes after ``up_to`` is not computed, and 0 in the result.

    Work and scratch memory grow with the number of rank weights. Zeros at their end are cut off where there are many; that waits for the
    device, unless a CUDA graph is being captured. ``quadrature`` is that of policies/race.py.
    """
    num_queries, num_items = scores.shape
    scores, coefficients = scores.detach().float().contiguous(), coefficients.float().contiguous()
    mask, weights = mask.contiguous(), _up_to_last_nonzero(rank_weights[:num_items]).to(scores).contiguous()
    results = scores.new_zeros(3, num_queries, num_items)
    if results.numel() == 0 or len(weights) == 0:
        return RaceResult(*results)
    shape = _shape(num_queries, num_items, len(weights), quadrature)
    block = shape.nodes * shape.counts
    scratch = scores.new_empty(shape.num_queries * shape.num_chunks, num_items, 2, block)
    partial = scores.new_empty(shape.num_queries * shape.num_chunks, 3, num_items)
    early = scores.new_empty(shape.num_queries, 2)
    visited = torch.empty(shape.num_queries * shape.num_chunks, dtype=torch.int32, device=scores.device)
    parts = {"exposure": 1, "gradient": 2, "curvature": 3}[up_to]
    with torch.cuda.device_of(scores):
        for first in range(0, num_queries, shape.num_queries):
            part = slice(first, min(first + shape.num_queries, num_queries))
            own_scores, own_mask, own_coefficients = scores[part], mask[part], coefficients[part]
            race_kernel[(len(own_scores), shape.num_chunks)](
                own_scores, own_mask, own_coefficients, weights, scratch, partial, early, visited,
                num_items, len(weights), shape.num_chunks,
                STEP=quadrature.step, BEFORE=quadrature.before, AFTER=quadrature.after,
                NODES=shape.nodes, COUNTS=shape.counts, GATHER=shape.counts <= _MOST_GATHERED, ITEMS=_ITEMS, PARTS=parts,
                num_warps=shape.num_warps,
            )  # fmt: skip
            race_sum_kernel[(len(own_scores), triton.cdiv(num_items, _ITEMS))](
                own_scores, own_mask, own_coefficients, partial, early, visited,
                results[0, part], results[1, part], results[2, part],
                num_items, shape.num_chunks, ITEMS=_ITEMS, PARTS=parts, num_warps=1,
            )  # fmt: skip
    return RaceResult(*results)


def _up_to_last_nonzero(weights: Tensor) -> Tensor:
    if len(weights) <= _FEW_WEIGHTS or (weights.is_cuda and torch.cuda.is_current_stream_capturing()):
        return weights
    nonzero = weights.nonzero()
    return weights[: int(nonzero[-1]) + 1] if len(nonzero) else weights[:1]


def _shape(num_queries: int, num_items: int, cutoff: int, quadrature: Any) -> _Shape:
    counts = max(8, triton.next_power_of_2(cutoff))
    nodes = max(1, _STATE // counts)
    usual_nodes = (quadrature.before + quadrature.after + _USUAL_SPREAD) / quadrature.step
    bytes_per_program = num_items * 2 * nodes * counts * 4
    num_programs = max(1, _SCRATCH_BYTES // bytes_per_program)
    num_chunks = min(math.ceil(usual_nodes / nodes), _MOST_CHUNKS, num_programs)
    return _Shape(
        counts, nodes, num_chunks, min(8, max(1, counts // 256)), min(num_queries, max(1, num_programs // num_chunks))
    )


@triton.jit(do_not_specialize=["num_items", "cutoff", "num_chunks"])
def race_kernel(
    scores, mask, coefficients, weights, scratch, partial, early, visited,
    num_items, cutoff, num_chunks,
    STEP: tl.constexpr, BEFORE: tl.constexpr, AFTER: tl.constexpr,
    NODES: tl.constexpr, COUNTS: tl.constexpr, GATHER: tl.constexpr, ITEMS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """What the blocks of nodes of one program add to exposure, gradient and curvature: ``partial`` (query x chunk, 3, item).

    ``early`` (query, 2) gets the factor of the closed-form part before the first node, and the highest score; ``visited`` (query x chunk)
    the number of blocks that the program integrated: where it is 0, its rows of ``partial`` are not written.
    """
    query = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    program = query * num_chunks + chunk
    scores += query * num_items
    mask += query * num_items
    coefficients += query * num_items
    partial += program * 3 * num_items
    scratch += program * num_items * (2 * NODES * COUNTS)

    length, highest, lowest, sum_of_rates = query_range(scores, mask, num_items, ITEMS)
    first = tl.floor((-tl.log(sum_of_rates) - BEFORE) / STEP).to(tl.int32)
    last = tl.ceil((AFTER - (lowest - highest)) / STEP).to(tl.int32)
    if chunk == 0:
        # Before the first node at most one item has arrived: there the integrand is λ_i t θ_1, a geometric series over nodes.
        growth = tl.exp(tl.full((), STEP, tl.float32)) - 1.0
        tl.store(early + 2 * query, STEP * tl.exp(first.to(tl.float32) * STEP) / growth * tl.load(weights))
        tl.store(early + 2 * query + 1, highest)

    num_blocks = tl.where(length > 0, (last - first) // NODES + 1, 0)
    block = chunk
    num_visited = 0
    while block < num_blocks:
        m = first + block * NODES
        x_first = m.to(tl.float32) * STEP
        x_last = x_first + (NODES - 1) * STEP
        nearest, expected = arrivals_at(x_first, scores, mask, length, highest, AFTER, ITEMS)
        # P[fewer than cutoff arrivals] <= e^-expected (e expected / cutoff)^cutoff: once it vanishes, later nodes add nothing.
        ratio = tl.maximum(expected / cutoff, 1.0)
        is_over = cutoff * (ratio - 1.0 - tl.log(ratio)) > 2 * BEFORE
        next_block = block + num_chunks
        if is_over or nearest == float("inf"):
            next_block = num_blocks
        elif nearest > x_last + 2 * BEFORE:
            # No item is due for a while: on to the first block of this program that is near the next one.
            reached = (tl.floor((nearest - 2 * BEFORE) / STEP).to(tl.int32) - first) // NODES
            next_block = block + tl.maximum((reached - block + num_chunks - 1) // num_chunks, 1) * num_chunks
        else:
            # float64 for s + log t: both may be thousands where their sum is near 0.
            x = (m + tl.arange(0, NODES)).to(tl.float64) * STEP - highest.to(tl.float64)
            run_forwards(x, scores, mask, coefficients, scratch, length, STEP, NODES, COUNTS, GATHER, PARTS)
            # Other threads of the program read what these have written.
            tl.debug_barrier()
            run_backwards(
                x, scores, mask, coefficients, weights, scratch, partial, num_visited, length, num_items, cutoff,
                STEP, NODES, COUNTS, GATHER, PARTS,
            )  # fmt: skip
            tl.debug_barrier()
            num_visited += 1
        block = next_block
    tl.store(visited + program, num_visited)


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
def arrivals_at(x, scores, mask, length, highest, AFTER: tl.constexpr, ITEMS: tl.constexpr):
    """Where the next item not long past log t = x is due (infinity without one), and the expected number of arrivals by then."""
    nearest = float("inf")
    expected = 0.0
    for start in range(0, length, ITEMS):
        items = start + tl.arange(0, ITEMS)
        is_item = tl.load(mask + items, mask=items < length, other=0) != 0
        s = tl.load(scores + items, mask=is_item, other=float("-inf"))
        due = highest - s
        nearest = tl.minimum(nearest, tl.min(tl.where(due >= x - AFTER, due, float("inf")), 0))
        expected += tl.sum(1.0 - tl.exp(-tl.exp(tl.minimum(x - due, 30.0))), 0)
    return nearest, expected


@triton.jit
def run_forwards(
    x, scores, mask, coefficients, scratch, length,
    STEP: tl.constexpr, NODES: tl.constexpr, COUNTS: tl.constexpr, GATHER: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """F and H before each item, to scratch memory (item, 2, node, count)."""
    counts = tl.arange(0, COUNTS)
    state = tl.arange(0, NODES)[:, None] * COUNTS + counts[None, :]
    below = tl.maximum(state % COUNTS - 1, 0)
    has_below = state % COUNTS > 0
    F = tl.where(has_below, 0.0, 1.0)
    H = tl.zeros((NODES, COUNTS), tl.float32)
    is_item = tl.load(mask) != 0
    s = tl.load(scores)
    c = tl.load(coefficients)
    for i in range(length):
        # The next item's numbers are on their way while this one's are used.
        next_is_item = tl.load(mask + i + 1, mask=i + 1 < length, other=0) != 0
        next_s = tl.load(scores + i + 1, mask=i + 1 < length, other=0.0)
        next_c = tl.load(coefficients + i + 1, mask=i + 1 < length, other=0.0)
        rate_t, still, arrived = coins(s, is_item, x)
        weighted = c * (STEP * rate_t * still)
        slot = scratch + i * (2 * NODES * COUNTS) + state
        tl.store(slot, F)
        if PARTS > 1:
            tl.store(slot + NODES * COUNTS, H)
        if GATHER:
            F_below = tl.where(has_below, tl.gather(F, below, 1), 0.0)
        else:
            tl.debug_barrier()
            F_below = tl.load(slot - 1, mask=has_below, other=0.0)
        if PARTS > 1:
            if GATHER:
                H_below = tl.where(has_below, tl.gather(H, below, 1), 0.0)
            else:
                H_below = tl.load(slot + NODES * COUNTS - 1, mask=has_below, other=0.0)
            H = still[:, None] * H + arrived[:, None] * H_below + weighted[:, None] * F
        F = still[:, None] * F + arrived[:, None] * F_below
        is_item = next_is_item
        s = next_s
        c = next_c


@triton.jit
def run_backwards(
    x, scores, mask, coefficients, weights, scratch, partial, num_visited, length, num_items, cutoff,
    STEP: tl.constexpr, NODES: tl.constexpr, COUNTS: tl.constexpr, GATHER: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """V and U after each item, and with F and H what these nodes add to ``partial`` (3, item)."""
    counts = tl.arange(0, COUNTS)
    state = tl.arange(0, NODES)[:, None] * COUNTS + counts[None, :]
    above = tl.minimum(state % COUNTS + 1, COUNTS - 1)
    has_above = state % COUNTS < COUNTS - 1
    V = tl.load(weights + state % COUNTS, mask=state % COUNTS < cutoff, other=0.0)
    U = tl.zeros((NODES, COUNTS), tl.float32)
    at = length - 1
    is_item = tl.load(mask + at) != 0
    s = tl.load(scores + at)
    c = tl.load(coefficients + at)
    F, H = saved_state(scratch, at, state, NODES * COUNTS, PARTS)
    next_F, next_H = saved_state(scratch, tl.maximum(length - 2, 0), state, NODES * COUNTS, PARTS)
    for j in range(length):
        i = length - 1 - j
        at = tl.maximum(i - 1, 0)
        next_is_item = tl.load(mask + at) != 0
        next_s = tl.load(scores + at)
        next_c = tl.load(coefficients + at)
        later_F, later_H = saved_state(scratch, tl.maximum(i - 2, 0), state, NODES * COUNTS, PARTS)
        rate_t, still, arrived = coins(s, is_item, x)
        density = STEP * rate_t * still
        if GATHER:
            V_above = tl.where(has_above, tl.gather(V, above, 1), 0.0)
        else:
            # In the place of F and H, which have been read.
            slot = scratch + i * (2 * NODES * COUNTS) + state
            tl.store(slot, V)
            if PARTS > 1:
                tl.store(slot + NODES * COUNTS, U)
            tl.debug_barrier()
            V_above = tl.load(slot + 1, mask=has_above, other=0.0)
        V_step = V_above - V
        worth = density * tl.sum(F * V, 1)
        add_to(partial + i, tl.sum(worth, 0), num_visited)
        if PARTS > 1:
            if GATHER:
                U_above = tl.where(has_above, tl.gather(U, above, 1), 0.0)
            else:
                slot = scratch + i * (2 * NODES * COUNTS) + state
                U_above = tl.load(slot + NODES * COUNTS + 1, mask=has_above, other=0.0)
            U_step = U_above - U
            slope = rate_t * still * tl.sum(F * U_step + H * V_step, 1)
            bend = worth * (1.0 - rate_t)
            add_to(partial + num_items + i, tl.sum(slope + c * bend, 0), num_visited)
            if PARTS > 2:
                add_to(partial + 2 * num_items + i, tl.sum(bend, 0), num_visited)
            U += arrived[:, None] * U_step + (c * density)[:, None] * V
        V += arrived[:, None] * V_step
        is_item = next_is_item
        s = next_s
        c = next_c
        F = next_F
        H = next_H
        next_F = later_F
        next_H = later_H


@triton.jit
def saved_state(scratch, item, state, STATE: tl.constexpr, PARTS: tl.constexpr):
    """F and H before an item; without gradients F twice."""
    slot = scratch + item * (2 * STATE) + state
    F = tl.load(slot)
    H = F
    if PARTS > 1:
        H = tl.load(slot + STATE)
    return F, H


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


@triton.jit(do_not_specialize=["num_items", "num_chunks"])
def race_sum_kernel(
    scores, mask, coefficients, partial, early, visited, exposure, gradient, curvature,
    num_items, num_chunks, ITEMS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Sums over the programs of each query, and the closed-form part before the first node; 0 on padding."""
    query = tl.program_id(0).to(tl.int64)
    items = tl.program_id(1) * ITEMS + tl.arange(0, ITEMS)
    is_item = tl.load(mask + query * num_items + items, mask=items < num_items, other=0) != 0
    s = tl.load(scores + query * num_items + items, mask=is_item, other=0.0)
    c = tl.load(coefficients + query * num_items + items, mask=is_item, other=0.0)
    tail = tl.load(early + 2 * query) * tl.exp(s - tl.load(early + 2 * query + 1))
    exposed = tail
    sloped = tail * c
    bend = tail
    for chunk in range(num_chunks):
        program = query * num_chunks + chunk
        is_read = is_item & (tl.load(visited + program) > 0)
        rows = partial + program * 3 * num_items + items
        exposed += tl.load(rows, mask=is_read, other=0.0)
        if PARTS > 1:
            sloped += tl.load(rows + num_items, mask=is_read, other=0.0)
        if PARTS > 2:
            bend += tl.load(rows + 2 * num_items, mask=is_read, other=0.0)
    tl.store(exposure + query * num_items + items, tl.where(is_item, exposed, 0.0), mask=items < num_items)
    if PARTS > 1:
        tl.store(gradient + query * num_items + items, tl.where(is_item, sloped, 0.0), mask=items < num_items)
    if PARTS > 2:
        tl.store(curvature + query * num_items + items, tl.where(is_item, bend, 0.0), mask=items < num_items)
