"""Scores of stacked relu networks and the gradient of their weights on a GPU; ``StackedLayers`` of models/average.py is the reference.

The weights of all members lie in one flat array: layer by layer the weights (member, outputs, inputs), then the biases (member, outputs).
One kernel takes a block of rows through all layers of a member, reading features by the number of their row; one takes their gradients
back; one multiplies them with the features. Sums over blocks of rows are added up in a fixed order. Products are of float32 numbers, split
so that tensor cores lose nothing ("tf32x3").
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

WIDEST = 128  # units of a hidden layer that a program can hold
_PROGRAMS = 264  # two for each multiprocessor of an H200: blocks of rows are smaller where there would be fewer
_PRECISION = "tf32x3"
_WARPS = 4
_ROW_BLOCKS = (64, 32)  # rows of a program; 16 where even the smaller ones give few programs
_INPUTS = 32  # features of a row that are multiplied at once
_SUMMED = 128  # weights per program that sums up
_ROWS, _COLUMNS = 64, 32  # rows multiplied at once, and features per program, for the gradient of the first weights


class Layout(NamedTuple):
    """The shape of the networks."""

    num_members: int
    num_features: int
    hidden: tuple[int, ...]  # units of each hidden layer

    @property
    def first_size(self) -> int:
        """Weights of the first layer, without biases."""
        return self.num_members * self.num_features * self.hidden[0]

    @property
    def size(self) -> int:
        """All weights and biases."""
        widths = (self.num_features, *self.hidden, 1)
        return self.num_members * sum((a + 1) * b for a, b in pairwise(widths))


class Dropout(NamedTuple):
    """Which activations are zero."""

    draws: Tensor  # random bytes (row of draws, bytes): those of the first layer (item, unit), filled up to eight, then those of the next
    rows: Tensor  # the row of draws that each member reads (member,)
    thresholds: Tensor  # draws below it zero an activation (layer, member), int32


def relu_scores(
    weights: Tensor, features: Tensor, rows: Tensor, layout: Layout, *, dropout: Dropout | None = None
) -> tuple[Tensor, list[Tensor]]:
    """Scores (member, row) of the rows (group, row) of the features, and what each hidden layer gives (member, row, unit)."""
    num_rows = rows.shape[1]
    activations = [features.new_empty(layout.num_members, num_rows, width) for width in layout.hidden]
    scores = features.new_empty(layout.num_members, num_rows)
    block = _row_block(num_rows, layout.num_members)
    with torch.cuda.device_of(features):
        scores_kernel[(triton.cdiv(num_rows, block), layout.num_members)](
            weights, features, rows, *_dropout_arrays(dropout, weights), tuple(activations), scores,
            num_rows, layout.num_members, layout.num_members // len(rows),
            D=layout.num_features, HIDDEN=layout.hidden, PADDED=_padded(layout), BLOCK=block, INPUTS=_INPUTS,
            DROPS=dropout is not None, PRECISION=_PRECISION, num_warps=_WARPS,
        )  # fmt: skip
    return scores, activations


def relu_gradient(
    slope: Tensor,
    weights: Tensor,
    features: Tensor,
    rows: Tensor,
    layout: Layout,
    *,
    activations: list[Tensor],
    dropout: Dropout | None = None,
) -> Tensor:
    """The gradient of Σ slope * scores in the flat weights, for slopes (member, row)."""
    num_rows, num_members = rows.shape[1], layout.num_members
    block = _row_block(num_rows, num_members)
    num_blocks = triton.cdiv(num_rows, block)
    gradient = torch.empty_like(weights)
    partial = weights.new_empty(num_blocks, layout.size - layout.first_size)
    first_slopes = torch.empty_like(activations[0])
    columns = _COLUMNS
    num_parts = max(1, min(_PROGRAMS // (num_members * triton.cdiv(layout.num_features, columns)), num_rows // 128))
    rows_per_part = triton.cdiv(num_rows, num_parts * 16) * 16
    products = gradient if num_parts == 1 else weights.new_empty(num_parts, layout.first_size)
    with torch.cuda.device_of(features):
        slopes_kernel[(num_blocks, num_members)](
            slope, weights, *_dropout_arrays(dropout, weights), tuple(activations), first_slopes, partial,
            num_rows, num_members, partial.shape[1],
            D=layout.num_features, HIDDEN=layout.hidden, PADDED=_padded(layout), BLOCK=block,
            DROPS=dropout is not None, PRECISION=_PRECISION, num_warps=_WARPS,
        )  # fmt: skip
        products_kernel[(triton.cdiv(layout.num_features, columns), num_members, num_parts)](
            first_slopes, features, rows, products,
            num_rows, num_members // len(rows), rows_per_part, layout.first_size,
            D=layout.num_features, WIDTH=layout.hidden[0], PADDED=_padded(layout)[0], ROWS=_ROWS, COLUMNS=columns,
            PRECISION=_PRECISION, num_warps=_WARPS,
        )  # fmt: skip
        num_first = 0 if num_parts == 1 else triton.cdiv(layout.first_size, _SUMMED)
        sum_kernel[(num_first + triton.cdiv(partial.shape[1], _SUMMED),)](
            products, partial, gradient, num_parts, num_blocks, layout.first_size, partial.shape[1], num_first,
            PARTS=16, BLOCK=_SUMMED, num_warps=4,
        )  # fmt: skip
    return gradient


def _row_block(num_rows: int, num_members: int) -> int:
    for block in _ROW_BLOCKS:
        if triton.cdiv(num_rows, block) * num_members >= _PROGRAMS:
            return block
    return 16


def _padded(layout: Layout) -> tuple[int, ...]:
    return tuple(max(16, triton.next_power_of_2(width)) for width in layout.hidden)


def _dropout_arrays(dropout: Dropout | None, weights: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    if dropout is None:
        return weights, weights, weights, 0
    return dropout.draws, dropout.rows, dropout.thresholds, dropout.draws.shape[1]


@triton.jit
def layer_start(num_members, D: tl.constexpr, HIDDEN: tl.constexpr, LAYER: tl.constexpr):
    """Where the weights of a layer start in the flat array."""
    start = num_members * 0
    for layer in tl.static_range(LAYER):
        if layer == 0:
            start += num_members * (D + 1) * HIDDEN[0]
        else:
            start += num_members * (HIDDEN[layer - 1] + 1) * HIDDEN[layer]
    return start


@triton.jit(do_not_specialize=["num_rows", "num_members", "per_group", "num_bytes"])
def scores_kernel(
    weights, features, rows, draws, draws_of, thresholds, num_bytes, activations, scores,
    num_rows, num_members, per_group,
    D: tl.constexpr, HIDDEN: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr, INPUTS: tl.constexpr,
    DROPS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One block of rows through all layers of one member."""
    member = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_row = row < num_rows
    source = tl.load(rows + member // per_group * num_rows + row, mask=is_row, other=0)
    WIDTH: tl.constexpr = PADDED[0]
    unit = tl.arange(0, WIDTH)
    is_unit = unit < HIDDEN[0]
    first = weights + member * HIDDEN[0] * D
    layer = tl.zeros((BLOCK, WIDTH), tl.float32)
    for start in range(0, D, INPUTS):
        column = start + tl.arange(0, INPUTS)
        x = tl.load(features + source[:, None] * D + column[None, :], mask=column[None, :] < D, other=0.0)
        w = tl.load(
            first + unit[None, :] * D + column[:, None], mask=is_unit[None, :] & (column[:, None] < D), other=0.0
        )
        layer = tl.dot(x.to(tl.float32), w, layer, input_precision=PRECISION)
    biases = weights + num_members.to(tl.int64) * HIDDEN[0] * D + member * HIDDEN[0]
    layer += tl.load(biases + unit, mask=is_unit, other=0.0)[None, :]
    layer = activated(
        layer, row, member, draws, draws_of, thresholds, num_bytes, num_rows, num_members, HIDDEN, 0, PADDED[0], DROPS
    )
    tl.store(
        activations[0] + (member * num_rows + row)[:, None] * HIDDEN[0] + unit[None, :],
        layer,
        mask=is_row[:, None] & is_unit[None, :],
    )
    for place in tl.static_range(1, len(HIDDEN)):
        own = weights + layer_start(num_members.to(tl.int64), D, HIDDEN, place)
        inner = tl.arange(0, PADDED[place - 1])
        outer = tl.arange(0, PADDED[place])
        w = tl.load(
            own + (member * HIDDEN[place] + outer[None, :]) * HIDDEN[place - 1] + inner[:, None],
            mask=(outer[None, :] < HIDDEN[place]) & (inner[:, None] < HIDDEN[place - 1]),
            other=0.0,
        )
        own += num_members.to(tl.int64) * HIDDEN[place] * HIDDEN[place - 1]
        bias = tl.load(own + member * HIDDEN[place] + outer, mask=outer < HIDDEN[place], other=0.0)
        layer = tl.dot(layer, w, input_precision=PRECISION) + bias[None, :]
        layer = activated(
            layer, row, member, draws, draws_of, thresholds, num_bytes, num_rows, num_members,
            HIDDEN, place, PADDED[place], DROPS,
        )  # fmt: skip
        tl.store(
            activations[place] + (member * num_rows + row)[:, None] * HIDDEN[place] + outer[None, :],
            layer,
            mask=is_row[:, None] & (outer[None, :] < HIDDEN[place]),
        )
    LAST: tl.constexpr = HIDDEN[len(HIDDEN) - 1]
    final = weights + layer_start(num_members.to(tl.int64), D, HIDDEN, len(HIDDEN))
    last = tl.arange(0, PADDED[len(HIDDEN) - 1])
    w = tl.load(final + member * LAST + last, mask=last < LAST, other=0.0)
    bias = tl.load(final + num_members.to(tl.int64) * LAST + member)
    tl.store(scores + member * num_rows + row, tl.sum(layer * w[None, :], 1) + bias, mask=is_row)


@triton.jit
def activated(
    layer, row, member, draws, draws_of, thresholds, num_bytes, num_rows, num_members,
    HIDDEN: tl.constexpr, PLACE: tl.constexpr, WIDTH: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """max(0, layer), of which dropout leaves some at 0 and scales up the others."""
    layer = tl.maximum(layer, 0.0)
    if DROPS:
        unit = tl.arange(0, WIDTH)
        start = num_rows.to(tl.int64) * 0
        for before in tl.static_range(PLACE):
            start += (num_rows * HIDDEN[before] + 7) // 8 * 8
        at = tl.load(draws_of + member) * num_bytes + start + (row[:, None] * HIDDEN[PLACE] + unit[None, :])
        is_read = (row[:, None] < num_rows) & (unit[None, :] < HIDDEN[PLACE])
        threshold = tl.load(thresholds + PLACE * num_members + member)
        drawn = tl.load(draws + at, mask=is_read, other=0).to(tl.int32)
        layer = tl.where(drawn >= threshold, layer * (256.0 / (256.0 - threshold.to(tl.float32))), 0.0)
    return layer


@triton.jit(do_not_specialize=["num_rows", "num_members", "num_partial", "num_bytes"])
def slopes_kernel(
    slope, weights, draws, draws_of, thresholds, num_bytes, activations, first_slopes, partial,
    num_rows, num_members, num_partial,
    D: tl.constexpr, HIDDEN: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr,
    DROPS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The slopes of one block of rows back through the layers of one member.

    ``first_slopes`` (member, row, unit) gets those before the first relu, ``partial`` (block, weight) what the block adds to the gradient
    of all weights but those of the first layer.
    """
    member = tl.program_id(1).to(tl.int64)
    members = num_members.to(tl.int64)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_row = row < num_rows
    # Weights start where those of the first layer end.
    partial += tl.program_id(0).to(tl.int64) * num_partial - members * HIDDEN[0] * D
    COUNT: tl.constexpr = len(HIDDEN)
    last = tl.arange(0, PADDED[COUNT - 1])
    is_last = last < HIDDEN[COUNT - 1]
    final = layer_start(members, D, HIDDEN, COUNT)
    a = tl.load(
        activations[COUNT - 1] + (member * num_rows + row)[:, None] * HIDDEN[COUNT - 1] + last[None, :],
        mask=is_row[:, None] & is_last[None, :],
        other=0.0,
    )
    d_score = tl.load(slope + member * num_rows + row, mask=is_row, other=0.0)
    w = tl.load(weights + final + member * HIDDEN[COUNT - 1] + last, mask=is_last, other=0.0)
    tl.store(partial + final + member * HIDDEN[COUNT - 1] + last, tl.sum(d_score[:, None] * a, 0), mask=is_last)
    tl.store(partial + final + members * HIDDEN[COUNT - 1] + member, tl.sum(d_score, 0))
    d = gated(d_score[:, None] * w[None, :], a, thresholds, member, num_members, COUNT - 1, DROPS)
    for back in tl.static_range(COUNT - 1):
        WIDTH = HIDDEN[COUNT - 1 - back]
        BELOW = HIDDEN[COUNT - 2 - back]
        outer = tl.arange(0, PADDED[COUNT - 1 - back])
        inner = tl.arange(0, PADDED[COUNT - 2 - back])
        a = tl.load(
            activations[COUNT - 2 - back] + (member * num_rows + row)[:, None] * BELOW + inner[None, :],
            mask=is_row[:, None] & (inner[None, :] < BELOW),
            other=0.0,
        )
        own = layer_start(members, D, HIDDEN, COUNT - 1 - back)
        at = own + (member * WIDTH + outer[:, None]) * BELOW + inner[None, :]
        is_weight = (outer[:, None] < WIDTH) & (inner[None, :] < BELOW)
        tl.store(partial + at, tl.dot(tl.trans(d), a, input_precision=PRECISION), mask=is_weight)
        tl.store(partial + own + (members * BELOW + member) * WIDTH + outer, tl.sum(d, 0), mask=outer < WIDTH)
        w = tl.load(weights + at, mask=is_weight, other=0.0)
        d = gated(tl.dot(d, w, input_precision=PRECISION), a, thresholds, member, num_members, COUNT - 2 - back, DROPS)
    unit = tl.arange(0, PADDED[0])
    is_unit = unit < HIDDEN[0]
    tl.store(partial + (members * D + member) * HIDDEN[0] + unit, tl.sum(d, 0), mask=is_unit)
    tl.store(
        first_slopes + (member * num_rows + row)[:, None] * HIDDEN[0] + unit[None, :],
        d,
        mask=is_row[:, None] & is_unit[None, :],
    )


@triton.jit
def gated(d, a, thresholds, member, num_members, PLACE: tl.constexpr, DROPS: tl.constexpr):
    """Slopes after a layer -> before its relu and dropout, where it gave ``a``."""
    if DROPS:
        d *= 256.0 / (256.0 - tl.load(thresholds + PLACE * num_members + member).to(tl.float32))
    return tl.where(a > 0.0, d, 0.0)


@triton.jit(do_not_specialize=["num_rows", "per_group", "size"])
def products_kernel(
    first_slopes, features, rows, products, num_rows, per_group, rows_per_part, size,
    D: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """What one part of the rows adds to the gradient of a block of columns of a member's first weights: ``products`` (part, weight)."""
    member = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    part = tl.program_id(2)
    unit = tl.arange(0, PADDED)
    end = tl.minimum((part + 1) * rows_per_part, num_rows)
    rows += member // per_group * num_rows
    total = tl.zeros((PADDED, COLUMNS), tl.float32)
    for start in range(part * rows_per_part, end, ROWS):
        row = start + tl.arange(0, ROWS)
        source = tl.load(rows + row, mask=row < end, other=0)
        x = tl.load(features + source[:, None] * D + column[None, :], mask=column[None, :] < D, other=0.0)
        d = tl.load(
            first_slopes + (member * num_rows + row)[None, :] * WIDTH + unit[:, None],
            mask=(row[None, :] < end) & (unit[:, None] < WIDTH),
            other=0.0,
        )
        total = tl.dot(d, x.to(tl.float32), total, input_precision=PRECISION)
    tl.store(
        products + part.to(tl.int64) * size + (member * WIDTH + unit[:, None]) * D + column[None, :],
        total,
        mask=(unit[:, None] < WIDTH) & (column[None, :] < D),
    )


@triton.jit(do_not_specialize=["num_parts", "num_blocks", "size", "num_partial", "num_first"])
def sum_kernel(
    products, partial, gradient, num_parts, num_blocks, size, num_partial, num_first,
    PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sums over the parts of rows of the first layer, in the first programs, and over the blocks of rows of all other weights."""
    number = tl.program_id(0)
    if number < num_first:
        at = number.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        total = sum_of_rows(products, at, num_parts, size, PARTS, BLOCK)
        tl.store(gradient + at, total, mask=at < size)
    else:
        at = (number - num_first).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        total = sum_of_rows(partial, at, num_blocks, num_partial, PARTS, BLOCK)
        tl.store(gradient + size + at, total, mask=at < num_partial)


@triton.jit
def sum_of_rows(rows, at, num_rows, width, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of an array (row, column) over rows at some columns, PARTS rows at once."""
    total = tl.zeros((PARTS, BLOCK), tl.float32)
    own = tl.arange(0, PARTS).to(tl.int64)[:, None]
    for start in range(0, num_rows, PARTS):
        is_read = (start + own < num_rows) & (at[None, :] < width)
        total += tl.load(rows + (start + own) * width + at[None, :], mask=is_read, other=0.0)
    return tl.sum(total, 0)
