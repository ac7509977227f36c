"""The exact race for few rank weights: a thread integrates one node, and its states F, H, V and U are registers, one per count.

So a shift by one count moves nothing, sums over counts need no other thread, and the coins of an item are tossed once per node. Items
are taken in segments: F and H go to scratch memory at the start of each segment on the way forwards; on the way backwards those within
the segment are computed again. Each block of nodes takes only the items that are due about then: earlier ones have arrived for certain,
later ones have not.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rankpolicy.kernels.triton.race_parts import block_after, coins, log_times, nodes_of_query


@triton.jit(do_not_specialize=["num_items", "num_chunks"])
def race_in_registers_kernel(
    scores, mask, coefficients, weights, scratch, partial, early, visited, active,
    num_items, num_chunks,
    STEP: tl.constexpr, BEFORE: tl.constexpr, AFTER: tl.constexpr,
    NODES: tl.constexpr, COUNTS: tl.constexpr, SEGMENT: tl.constexpr, ITEMS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """What ``race_kernel`` computes; COUNTS is the number of rank weights, ``active`` (query x chunk, item) room for numbers of items."""
    query = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    program = query * num_chunks + chunk
    scores += query * num_items
    mask += query * num_items
    coefficients += query * num_items
    partial += program * 3 * num_items
    active += program * num_items
    num_segments = (num_items + SEGMENT - 1) // SEGMENT
    scratch += program * num_segments * (2 * NODES * COUNTS)

    length, highest, first, num_blocks = nodes_of_query(
        scores, mask, weights, early + 2 * query, num_items, chunk == 0, STEP, BEFORE, AFTER, NODES, ITEMS
    )
    block = chunk
    num_visited = 0
    while block < num_blocks:
        next_block, is_integrated = block_after(
            block, num_chunks, num_blocks, first, scores, mask, length, highest, COUNTS, STEP, BEFORE, AFTER, NODES, ITEMS
        )  # fmt: skip
        if is_integrated:
            x = log_times(first + block * NODES, highest, STEP, NODES)
            low = (first + block * NODES).to(tl.float32) * STEP - AFTER
            high = low + AFTER + (NODES - 1) * STEP + 2 * BEFORE + tl.log(length.to(tl.float32))
            num_active, num_past = list_active(active, scores, mask, length, highest, low, high, ITEMS)
            if num_visited == 0:
                clear(partial, num_items, ITEMS, PARTS)
            tl.debug_barrier()
            run_forwards(
                x, scores, coefficients, scratch, active, num_active, num_past, STEP, NODES, COUNTS, SEGMENT, PARTS
            )
            tl.debug_barrier()
            run_backwards(
                x, scores, coefficients, weights, scratch, partial, active, num_visited, num_active, num_items,
                STEP, NODES, COUNTS, SEGMENT, PARTS,
            )  # fmt: skip
            tl.debug_barrier()
            num_visited += 1
        block = next_block
    tl.store(visited + program, num_visited)


@triton.jit
def list_active(active, scores, mask, length, highest, low, high, ITEMS: tl.constexpr):
    """Write the numbers of the items that are due between ``low`` and ``high``; how many they are, and how many are due before."""
    num_active = 0
    num_past = 0
    for start in range(0, length, ITEMS):
        items = start + tl.arange(0, ITEMS)
        is_item = tl.load(mask + items, mask=items < length, other=0) != 0
        due = highest - tl.load(scores + items, mask=is_item, other=float("-inf"))
        is_active = is_item & (due >= low) & (due <= high)
        tl.store(active + num_active + tl.cumsum(is_active.to(tl.int32), 0) - 1, items, mask=is_active)
        num_active += tl.sum(is_active.to(tl.int32), 0)
        num_past += tl.sum((is_item & (due < low)).to(tl.int32), 0)
    return num_active, num_past


@triton.jit
def clear(partial, num_items, ITEMS: tl.constexpr, PARTS: tl.constexpr):
    """Zeros for the rows of ``partial`` that will be read."""
    for start in range(0, num_items, ITEMS):
        items = start + tl.arange(0, ITEMS)
        for part in tl.static_range(PARTS):
            tl.store(partial + part * num_items + items, tl.zeros((ITEMS,), tl.float32), mask=items < num_items)


@triton.jit
def run_forwards(
    x, scores, coefficients, scratch, active, num_active, num_past,
    STEP: tl.constexpr, NODES: tl.constexpr, COUNTS: tl.constexpr, SEGMENT: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """F and H before each segment, to scratch memory (segment, 2, count, node). A thread reads there only what it wrote itself."""
    F, H = start_of_list(num_past, NODES, COUNTS)
    for start in range(0, num_active, SEGMENT):
        keep_state(scratch + start // SEGMENT * (2 * NODES * COUNTS), F, H, NODES, COUNTS, PARTS)
        items = read_items(scores, coefficients, active, start, num_active, SEGMENT)
        for place in tl.static_range(SEGMENT):
            _, is_item, s, c = items[place]
            rate_t, still, arrived = coins(s, is_item, x)
            F, H = after_item(F, H, still, arrived, c * (STEP * rate_t * still), COUNTS, PARTS)


@triton.jit
def run_backwards(
    x, scores, coefficients, weights, scratch, partial, active, num_visited, num_active, num_items,
    STEP: tl.constexpr, NODES: tl.constexpr, COUNTS: tl.constexpr, SEGMENT: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """V and U after each item, and with F and H what these nodes add to ``partial`` (3, item)."""
    V, U = end_of_list(weights, NODES, COUNTS)
    num_segments = (num_active + SEGMENT - 1) // SEGMENT
    for number in range(num_segments):
        segment = num_segments - 1 - number
        items = read_items(scores, coefficients, active, segment * SEGMENT, num_active, SEGMENT)
        sums = read_sums(partial, items, num_visited, num_items, SEGMENT, PARTS)
        F, H = kept_state(scratch + segment * (2 * NODES * COUNTS), NODES, COUNTS, PARTS)
        states = ((F, H),)
        tossed = ()
        for place in tl.static_range(SEGMENT):
            _, is_item, s, c = items[place]
            rate_t, still, arrived = coins(s, is_item, x)
            tossed = tossed + ((rate_t, still, arrived),)
            if place < SEGMENT - 1:
                F, H = after_item(F, H, still, arrived, c * (STEP * rate_t * still), COUNTS, PARTS)
                states = states + ((F, H),)
        for back in tl.static_range(SEGMENT):
            at, is_item, _, c = items[SEGMENT - 1 - back]
            rate_t, still, arrived = tossed[SEGMENT - 1 - back]
            F, H = states[SEGMENT - 1 - back]
            exposed, sloped, bent = sums[SEGMENT - 1 - back]
            density = STEP * rate_t * still
            worth = density * sum_of_products(F, V, COUNTS)
            tl.store(partial + at, exposed + tl.sum(worth, 0), mask=is_item)
            if PARTS > 1:
                slope = rate_t * still * (sum_of_steps(F, U, COUNTS) + sum_of_steps(H, V, COUNTS))
                bend = worth * (1.0 - rate_t)
                tl.store(partial + num_items + at, sloped + tl.sum(slope + c * bend, 0), mask=is_item)
                if PARTS > 2:
                    tl.store(partial + 2 * num_items + at, bent + tl.sum(bend, 0), mask=is_item)
            V, U = before_item(V, U, arrived, c * density, COUNTS, PARTS)


@triton.jit
def read_items(scores, coefficients, active, start, num_active, SEGMENT: tl.constexpr):
    """Number of each item of a segment, whether it is one, its score and its coefficient."""
    items = ()
    for place in tl.static_range(SEGMENT):
        is_item = start + place < num_active
        at = tl.load(active + start + place, mask=is_item, other=0)
        s = tl.load(scores + at)
        c = tl.load(coefficients + at)
        items = items + ((at, is_item, s, c),)
    return items


@triton.jit
def read_sums(partial, items, num_visited, num_items, SEGMENT: tl.constexpr, PARTS: tl.constexpr):
    """What earlier blocks have added to the rows of the items of a segment."""
    sums = ()
    for place in tl.static_range(SEGMENT):
        at, is_item, _, _ = items[place]
        is_read = is_item & (num_visited > 0)
        exposed = tl.load(partial + at, mask=is_read, other=0.0)
        sloped = exposed
        bent = exposed
        if PARTS > 1:
            sloped = tl.load(partial + num_items + at, mask=is_read, other=0.0)
        if PARTS > 2:
            bent = tl.load(partial + 2 * num_items + at, mask=is_read, other=0.0)
        sums = sums + ((exposed, sloped, bent),)
    return sums


@triton.jit
def start_of_list(num_past, NODES: tl.constexpr, COUNTS: tl.constexpr):
    """The first items have arrived."""
    zeros = tl.zeros((NODES,), tl.float32)
    F = (tl.where(num_past == 0, 1.0, zeros),)
    H = (zeros,)
    for count in tl.static_range(1, COUNTS):
        F = F + (tl.where(num_past == count, 1.0, zeros),)
        H = H + (zeros,)
    return F, H


@triton.jit
def end_of_list(weights, NODES: tl.constexpr, COUNTS: tl.constexpr):
    """The weight of the rank after each count."""
    V = (tl.zeros((NODES,), tl.float32) + tl.load(weights),)
    U = (tl.zeros((NODES,), tl.float32),)
    for count in tl.static_range(1, COUNTS):
        V = V + (tl.zeros((NODES,), tl.float32) + tl.load(weights + count),)
        U = U + (tl.zeros((NODES,), tl.float32),)
    return V, U


@triton.jit
def after_item(F, H, still, arrived, weighted, COUNTS: tl.constexpr, PARTS: tl.constexpr):
    """F and H with one more item."""
    new_F = (still * F[0],)
    new_H = H
    if PARTS > 1:
        new_H = (still * H[0] + weighted * F[0],)
    for count in tl.static_range(1, COUNTS):
        new_F = new_F + (still * F[count] + arrived * F[count - 1],)
        if PARTS > 1:
            new_H = new_H + (still * H[count] + arrived * H[count - 1] + weighted * F[count],)
    return new_F, new_H


@triton.jit
def before_item(V, U, arrived, weighted, COUNTS: tl.constexpr, PARTS: tl.constexpr):
    """V and U with one more item; past the last count both are 0."""
    new_V = ()
    new_U = ()
    for count in tl.static_range(COUNTS):
        if count < COUNTS - 1:
            new_V = new_V + (V[count] + arrived * (V[count + 1] - V[count]),)
            if PARTS > 1:
                new_U = new_U + (U[count] + arrived * (U[count + 1] - U[count]) + weighted * V[count],)
        else:
            new_V = new_V + (V[count] - arrived * V[count],)
            if PARTS > 1:
                new_U = new_U + (U[count] - arrived * U[count] + weighted * V[count],)
    if PARTS == 1:
        new_U = U
    return new_V, new_U


@triton.jit
def sum_of_products(F, V, COUNTS: tl.constexpr):
    """Σ_count F V."""
    total = F[0] * V[0]
    for count in tl.static_range(1, COUNTS):
        total += F[count] * V[count]
    return total


@triton.jit
def sum_of_steps(F, V, COUNTS: tl.constexpr):
    """Σ_count F (V at the next count - V)."""
    total = -(F[COUNTS - 1] * V[COUNTS - 1])
    for count in tl.static_range(COUNTS - 1):
        total += F[count] * (V[count + 1] - V[count])
    return total


@triton.jit
def keep_state(slot, F, H, NODES: tl.constexpr, COUNTS: tl.constexpr, PARTS: tl.constexpr):
    """F and H to scratch memory (2, count, node)."""
    nodes = tl.arange(0, NODES)
    for count in tl.static_range(COUNTS):
        tl.store(slot + count * NODES + nodes, F[count])
        if PARTS > 1:
            tl.store(slot + (COUNTS + count) * NODES + nodes, H[count])


@triton.jit
def kept_state(slot, NODES: tl.constexpr, COUNTS: tl.constexpr, PARTS: tl.constexpr):
    """F and H from scratch memory; without gradients F twice."""
    nodes = tl.arange(0, NODES)
    F = ()
    H = ()
    for count in tl.static_range(COUNTS):
        F = F + (tl.load(slot + count * NODES + nodes),)
        if PARTS > 1:
            H = H + (tl.load(slot + (COUNTS + count) * NODES + nodes),)
    if PARTS == 1:
        H = F
    return F, H
