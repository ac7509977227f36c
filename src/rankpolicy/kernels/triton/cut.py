"""The queries of a training step, copied out of their bucket in one launch; ``ResidentSteps.batch`` is the specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor


class CutQueries(NamedTuple):
    """Rows (group, query * item), and arrays (group * member * query, item) or (group * member * query,)."""

    rows: Tensor
    labels: Tensor
    mask: Tensor
    values: Sequence[Tensor]
    groups: Tensor | None
    query_weights: Tensor | None


def cut_queries(
    order: Tensor,
    step: Tensor,
    *,
    num_queries: int,
    members: int,
    rows: Tensor,
    labels: Tensor,
    mask: Tensor,
    values: Sequence[Tensor] = (),
    groups: Tensor | None = None,
    query_weights: Tensor | None = None,
) -> CutQueries:
    """The queries order[group, step * num_queries:][:num_queries], for each of the ``members`` of a group.

    ``step`` (1,) may exceed the number of full steps: then the last ``num_queries`` are taken.
    """
    num_groups, num_items = len(order), rows.shape[1]
    shape = (num_groups * members * num_queries, num_items)
    cut = CutQueries(
        rows.new_empty(num_groups, num_queries * num_items),
        labels.new_empty(shape),
        mask.new_empty(shape),
        tuple(own.new_empty(shape) for own in values),
        None if groups is None else groups.new_empty(shape),
        None if query_weights is None else query_weights.new_empty(shape[0]),
    )
    arrays = [
        (labels, cut.labels),
        (mask.view(torch.uint8), cut.mask.view(torch.uint8)),
        *zip(values, cut.values, strict=True),
    ]
    if groups is not None and cut.groups is not None:
        arrays.append((groups, cut.groups))
    with torch.cuda.device_of(labels):
        cut_kernel[(num_groups * members * num_queries,)](
            order, step, rows, cut.rows,
            labels if query_weights is None else query_weights, labels if cut.query_weights is None else cut.query_weights,
            tuple(source for source, _ in arrays), tuple(target for _, target in arrays),
            order.shape[1], num_queries, members, num_items,
            HAS_WEIGHTS=query_weights is not None, ITEMS=min(1024, max(32, triton.next_power_of_2(num_items))), num_warps=1,
        )  # fmt: skip
    return cut


@triton.jit(do_not_specialize=["num_all", "num_queries", "members", "num_items"])
def cut_kernel(
    order, step, rows, rows_cut, query_weights, query_weights_cut, sources, targets,
    num_all, num_queries, members, num_items, HAS_WEIGHTS: tl.constexpr, ITEMS: tl.constexpr,
):  # fmt: skip
    """One query of one member."""
    target = tl.program_id(0).to(tl.int64)
    group = target // (members * num_queries)
    place = target % num_queries
    start = tl.minimum(tl.load(step) * num_queries, num_all - num_queries)
    source = tl.load(order + group * num_all + start + place)
    if HAS_WEIGHTS:
        tl.store(query_weights_cut + target, tl.load(query_weights + source))
    is_first = target // num_queries % members == 0
    for first in range(0, num_items, ITEMS):
        item = first + tl.arange(0, ITEMS)
        is_cell = item < num_items
        row = tl.load(rows + source * num_items + item, mask=is_cell & is_first, other=0)
        tl.store(rows_cut + (group * num_queries + place) * num_items + item, row, mask=is_cell & is_first)
        for array in tl.static_range(len(sources)):
            value = tl.load(sources[array] + source * num_items + item, mask=is_cell, other=0)
            tl.store(targets[array] + target * num_items + item, value, mask=is_cell)
