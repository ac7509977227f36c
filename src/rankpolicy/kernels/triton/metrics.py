"""Metrics of rankings by score on a GPU: one program per query sorts its items and computes all metrics; the torch functions in metrics/
are the specification."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from rankpolicy.kernels.metrics import codes
from rankpolicy.kernels.triton.reinforce import MOST_ITEMS, device_table, metric_value, sortable
from rankpolicy.types import Conventions

_NDCG = tl.constexpr(codes.NDCG)


class MetricValues(NamedTuple):
    """Values of each metric, and where equal scores leave them open."""

    values: Tensor  # (query, term) float32
    are_open: Tensor  # (query,) whether the order of items with equal scores changes a value


def metric_values(
    scores: Tensor,
    labels: Tensor,
    offsets: Tensor,
    queries: Tensor,
    *,
    longest: int,
    kinds: tuple[int, ...],
    cutoffs: tuple[int, ...],
    conventions: Conventions,
) -> MetricValues:
    """Metrics of some ``queries`` (query,), none of more than ``longest`` <= MOST_ITEMS items, of flat scores and labels (items,).

    ``offsets`` (queries + 1,) say where the queries of the dataset start. Items with equal scores keep their order.
    """
    assert longest <= MOST_ITEMS
    table = device_table(kinds, cutoffs, (1.0,) * len(kinds), scores.device)
    depth = min(longest, max(cutoffs))
    values = torch.empty(len(queries), len(kinds), dtype=torch.float32, device=scores.device)
    are_open = torch.empty(len(queries), dtype=torch.bool, device=scores.device)
    items = max(16, triton.next_power_of_2(longest))
    empty = float("nan") if conventions.empty == "skip" else float(conventions.empty)
    if len(queries) > 0:
        with torch.cuda.device_of(scores):
            metrics_kernel[(len(queries),)](
                scores.detach().float().contiguous(), labels, offsets, queries, *table[:2], values, are_open.view(torch.uint8),
                len(kinds), depth, float(conventions.relevant_from), 2.0 ** -float(conventions.max_label), empty,
                LINEAR=conventions.gain == "linear", HAS_NDCG=codes.NDCG in kinds, ITEMS=items,
                # One position more than count, to see whether it has the score of the last that does.
                POSITIONS=min(items, max(16, triton.next_power_of_2(depth + 1))), num_warps=min(16, max(1, items // 256)),
            )  # fmt: skip
    return MetricValues(values, are_open)


@triton.jit(do_not_specialize=["num_terms", "depth"])
def metrics_kernel(
    scores, labels, offsets, queries, kinds, cutoffs, values, are_open,
    num_terms, depth, relevant_from, stop_scale, empty,
    LINEAR: tl.constexpr, HAS_NDCG: tl.constexpr, ITEMS: tl.constexpr, POSITIONS: tl.constexpr,
):  # fmt: skip
    """One query."""
    number = tl.program_id(0).to(tl.int64)
    query = tl.load(queries + number)
    start = tl.load(offsets + query)
    length = (tl.load(offsets + query + 1) - start).to(tl.int32)
    items = tl.arange(0, ITEMS)
    is_item = items < length
    label = tl.load(labels + start + items, mask=is_item, other=0.0).to(tl.float32)
    score = tl.load(scores + start + items, mask=is_item, other=0.0)
    best = tl.topk(sortable(score, is_item, items, ITEMS), POSITIONS)

    positions = tl.arange(0, POSITIONS)
    ranked = (ITEMS - 1 - (best & (ITEMS - 1))).to(tl.int32)
    reach = tl.minimum(length, depth)
    ranked_label = tl.load(labels + start + ranked, mask=positions < tl.minimum(length, POSITIONS), other=0.0).to(
        tl.float32
    )
    key = best // ITEMS
    below = tl.minimum(positions + 1, POSITIONS - 1)
    is_tied = (positions + 1 < length) & (positions < reach) & (positions + 1 < POSITIONS)
    is_tied = is_tied & (tl.gather(key, below, 0) == key)
    # At the last position that counts, those who come after may have any label.
    is_open = is_tied & ((tl.gather(ranked_label, below, 0) != ranked_label) | (positions == reach - 1))
    tl.store(are_open + number, tl.max(is_open.to(tl.int32), 0).to(tl.uint8))

    is_placed = positions < reach
    num_relevant = tl.sum((is_item & (label >= relevant_from)).to(tl.float32), 0)
    has_gain = tl.max(label, 0) > 0
    best_label = ranked_label
    if HAS_NDCG:
        ideal = tl.topk(sortable(label, is_item, items, ITEMS), POSITIONS)
        best_item = (ITEMS - 1 - (ideal & (ITEMS - 1))).to(tl.int32)
        best_label = tl.load(labels + start + best_item, mask=is_placed, other=0.0).to(tl.float32)
    for t in range(num_terms):
        kind = tl.load(kinds + t)
        cutoff = tl.load(cutoffs + t)
        value = metric_value(
            kind, cutoff, ranked_label, is_placed, positions, length, num_relevant, has_gain,
            relevant_from, stop_scale, empty, LINEAR,
        )  # fmt: skip
        if HAS_NDCG:
            if kind == _NDCG:
                ideal_value = metric_value(
                    kind, cutoff, best_label, is_placed, positions, length, num_relevant, has_gain,
                    relevant_from, stop_scale, empty, LINEAR,
                )  # fmt: skip
                value = tl.where(ideal_value > 0.0, value / tl.where(ideal_value > 0.0, ideal_value, 1.0), empty)
        tl.store(values + number * num_terms + t, value)
