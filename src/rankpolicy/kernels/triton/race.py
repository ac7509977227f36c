"""Exposure of a Plackett-Luce policy and the gradient of any function of it, on a GPU: the recursions of kernels/plackett_luce/race.py.

A program takes one query and every num_chunks-th block of its nodes. For few rank weights race_in_registers.py serves, for more the kernel
here: the states F, H, V and U are blocks (node, count) in registers; a shift by one count is a gather within a warp. F and H of every
item go to scratch memory on the way forwards and come back on the way backwards, two items ahead of their use. (Where there are more
counts than a warp can gather well, the shifted state is read from scratch memory.) Each program adds into rows of its own, which a second
kernel sums in a fixed order: results do not depend on how programs are scheduled. Nothing here waits for the device, so that a CUDA graph
can hold it.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from rankpolicy.kernels.triton.race_in_registers import race_in_registers_kernel
from rankpolicy.kernels.triton.race_parts import add_to, block_after, coins, log_times, nodes_of_query

_SCRATCH_BYTES = 1 << 31  # queries are taken in parts that need no more scratch than this
_USUAL_SPREAD = 20.0  # between the highest and the lowest score of a query; wider ones take more rounds per program
_MOST_CHUNKS = 64
_MOST_IN_REGISTERS = 16  # rank weights up to which a thread holds the states of a node in registers
_NODES = 32  # there: nodes of a program, one per thread of a warp
_SEGMENTS = (2, 4)  # there: items between states that are kept, in lists of few items and in longer ones
_STATE = 128  # numbers in a (node, count) block: four registers of a warp
_MOST_GATHERED = 256  # counts up to which a shift is a gather: its shuffles grow with the square of the counts
_FEW_WEIGHTS = 16  # not worth a look whether they end with zeros
_FEW_ITEMS = 32
_ITEMS = 256  # items read at once where their order does not matter


class RaceResult(NamedTuple):
    """Arrays (query, item) but the last, float32."""

    exposure: Tensor
    gradient: Tensor  # dΦ/dscores
    curvature: Tensor  # dexposure_i/dscores_i
    total: Tensor  # Σ coefficients * exposure (query,)


class _Shape(NamedTuple):
    """How a launch is cut up."""

    counts: int  # rank weights, for race_kernel rounded up to a power of two
    nodes: int  # nodes that a program integrates at once
    segment: int  # items between states that are kept, for race_in_registers_kernel; 0: race_kernel serves
    num_chunks: int  # programs per query
    num_warps: int
    num_queries: int  # queries per launch
    scratch: int  # numbers of scratch memory per program


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
    parts = {"exposure": 1, "gradient": 2, "curvature": 3}[up_to]
    if scores.numel() == 0 or len(weights) == 0:
        nothing = torch.zeros_like(scores)
        return RaceResult(nothing, nothing, nothing, scores.new_zeros(num_queries))
    total = scores.new_empty(num_queries)
    results = list(scores.new_empty(parts, num_queries, num_items))
    results += [scores.new_zeros(()).expand(num_queries, num_items)] * (3 - parts)
    shape = _shape(num_queries, num_items, len(weights), quadrature)
    scratch = scores.new_empty(shape.num_queries * shape.num_chunks * shape.scratch)
    partial = scores.new_empty(shape.num_queries * shape.num_chunks, 3, num_items)
    early = scores.new_empty(shape.num_queries, 2)
    visited = torch.empty(shape.num_queries * shape.num_chunks, dtype=torch.int32, device=scores.device)
    active = torch.empty(partial.shape[0] if shape.segment else 0, num_items, dtype=torch.int32, device=scores.device)
    items = _FEW_ITEMS if num_items <= _FEW_ITEMS else _ITEMS
    nodes = {"STEP": quadrature.step, "BEFORE": quadrature.before, "AFTER": quadrature.after, "NODES": shape.nodes}
    with torch.cuda.device_of(scores):
        for first in range(0, num_queries, shape.num_queries):
            part = slice(first, min(first + shape.num_queries, num_queries))
            own_scores, own_mask, own_coefficients = scores[part], mask[part], coefficients[part]
            arrays = (own_scores, own_mask, own_coefficients, weights, scratch, partial, early, visited)
            grid = (len(own_scores), shape.num_chunks)
            if shape.segment:
                race_in_registers_kernel[grid](
                    *arrays, active, num_items, shape.num_chunks,
                    **nodes, COUNTS=shape.counts, SEGMENT=shape.segment, ITEMS=items, PARTS=parts,
                    num_warps=1,
                )  # fmt: skip
            else:
                race_kernel[grid](
                    *arrays, num_items, len(weights), shape.num_chunks,
                    **nodes, COUNTS=shape.counts, GATHER=shape.counts <= _MOST_GATHERED, ITEMS=_ITEMS, PARTS=parts,
                    num_warps=shape.num_warps,
                )  # fmt: skip
            race_sum_kernel[(len(own_scores), triton.cdiv(num_items, _ITEMS))](
                own_scores, own_mask, own_coefficients, partial, early, visited,
                results[0][part], results[1][part], results[2][part], total[part],
                num_items, shape.num_chunks, ITEMS=_ITEMS, PARTS=parts, num_warps=1,
            )  # fmt: skip
    if num_items > _ITEMS:
        total = (coefficients * results[0]).sum(-1)
    return RaceResult(results[0], results[1], results[2], total)


def _up_to_last_nonzero(weights: Tensor) -> Tensor:
    if len(weights) <= _FEW_WEIGHTS or (weights.is_cuda and torch.cuda.is_current_stream_capturing()):
        return weights
    nonzero = weights.nonzero()
    return weights[: int(nonzero[-1]) + 1] if len(nonzero) else weights[:1]


def _shape(num_queries: int, num_items: int, cutoff: int, quadrature: Any) -> _Shape:
    if cutoff <= _MOST_IN_REGISTERS:
        counts, nodes, num_warps = cutoff, _NODES, 1
        segment = _SEGMENTS[0] if num_items <= _FEW_ITEMS else _SEGMENTS[1]
        scratch = math.ceil(num_items / segment) * 2 * nodes * counts
    else:
        counts = max(8, triton.next_power_of_2(cutoff))
        nodes, segment, num_warps = max(1, _STATE // counts), 0, min(8, max(1, counts // 256))
        scratch = num_items * 2 * nodes * counts
    usual_nodes = (quadrature.before + quadrature.after + _USUAL_SPREAD) / quadrature.step
    num_programs = max(1, _SCRATCH_BYTES // (4 * scratch))
    num_chunks = min(math.ceil(usual_nodes / nodes), _MOST_CHUNKS, num_programs)
    num_queries = min(num_queries, max(1, num_programs // num_chunks))
    return _Shape(counts, nodes, segment, num_chunks, num_warps, num_queries, scratch)


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

    length, highest, first, num_blocks = nodes_of_query(
        scores, mask, weights, early + 2 * query, num_items, chunk == 0, STEP, BEFORE, AFTER, NODES, ITEMS
    )
    block = chunk
    num_visited = 0
    while block < num_blocks:
        next_block, is_integrated = block_after(
            block, num_chunks, num_blocks, first, scores, mask, length, highest, cutoff, STEP, BEFORE, AFTER, NODES, ITEMS
        )  # fmt: skip
        if is_integrated:
            x = log_times(first + block * NODES, highest, STEP, NODES)
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


@triton.jit(do_not_specialize=["num_items", "num_chunks"])
def race_sum_kernel(
    scores, mask, coefficients, partial, early, visited, exposure, gradient, curvature, total,
    num_items, num_chunks, ITEMS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Sums over the programs of each query, and the closed-form part before the first node; 0 on padding.

    ``total`` (query,) gets the sum of coefficient * exposure where one program takes all items.
    """
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
    if num_items <= ITEMS:
        tl.store(total + query, tl.sum(tl.where(is_item, exposed * c, 0.0), 0))
    if PARTS > 1:
        tl.store(gradient + query * num_items + items, tl.where(is_item, sloped, 0.0), mask=items < num_items)
    if PARTS > 2:
        tl.store(curvature + query * num_items + items, tl.where(is_item, bend, 0.0), mask=items < num_items)
