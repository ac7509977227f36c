"""The E steps of click models on a GPU, in float64; the specifications are clicks/models/examination.py and clicks/models/cascade.py."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 128


def examine_cells(
    pairs: Tensor, slots: Tensor, clicks: Tensor, skips: Tensor, attraction: Tensor, examination: Tensor
) -> tuple[Tensor, Tensor]:
    """How often the item of each cell (cell,) was examined, and the log-likelihood of its marks (cell,).

    Cells are pairs in a slot, int32, with their clicks and impressions without click.
    """
    examined, logs = torch.empty_like(clicks), torch.empty_like(clicks)
    if len(pairs):
        with torch.cuda.device_of(clicks):
            examination_kernel[(triton.cdiv(len(pairs), _BLOCK),)](
                pairs, slots, clicks, skips, attraction, examination, examined, logs, len(pairs), BLOCK=_BLOCK, num_warps=4
            )  # fmt: skip
    return examined, logs


@triton.jit(do_not_specialize=["num_cells"])
def examination_kernel(
    pairs, slots, clicks, skips, attraction, examination, examined, logs, num_cells, BLOCK: tl.constexpr
):  # fmt: skip
    """One lane per cell."""
    cells = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_cell = cells < num_cells
    a = tl.load(attraction + tl.load(pairs + cells, mask=is_cell, other=0))
    e = tl.load(examination + tl.load(slots + cells, mask=is_cell, other=0))
    clicked = tl.load(clicks + cells, mask=is_cell, other=0.0)
    skipped = tl.load(skips + cells, mask=is_cell, other=0.0)
    hit = e * a
    miss = 1.0 - hit
    still_examined = tl.where(miss != 0.0, skipped * e * (1.0 - a) / tl.where(miss != 0.0, miss, 1.0), 0.0)
    tl.store(examined + cells, clicked + still_examined, mask=is_cell)
    tl.store(logs + cells, weighted_log(clicked, hit) + weighted_log(skipped, miss), mask=is_cell)


@triton.jit
def weighted_log(weight, probability):
    """weight x log probability, 0 without weight."""
    return tl.where(weight > 0.0, weight * tl.log(tl.where(weight > 0.0, probability, 1.0)), 0.0)


class ExaminedLists(NamedTuple):
    """What happened below the last clicks of lists."""

    examined: Tensor  # (position, list) sessions that examined the item there
    went_on: Tensor  # (position, list) P(went on | last click here), where there are such clicks
    skips: Tensor  # (list,)
    gone_on: Tensor  # (list,)
    logs: Tensor  # (list,) log-likelihood


def examine_lists(
    pairs: Tensor, lengths: Tensor, last_clicks: Tensor, after_click: Tensor, attraction: Tensor, after_skip: Tensor
) -> ExaminedLists:
    """The chain of every list: pairs (position, list) and lengths (list,) int32, last clicks (position + 1, list), after_click
    (position, list) where there are last clicks, after_skip (1,).
    """
    num_positions, num_lists = pairs.shape
    examined, went_on = torch.empty_like(after_click), torch.empty_like(after_click)
    later, sums = torch.empty_like(after_click), after_click.new_empty(3, num_lists)
    with torch.cuda.device_of(attraction):
        cascade_kernel[(triton.cdiv(num_lists, _BLOCK),)](
            pairs, lengths, last_clicks, after_click, attraction, after_skip, examined, went_on, later, sums,
            num_positions, num_lists, BLOCK=_BLOCK, num_warps=4,
        )  # fmt: skip
    return ExaminedLists(examined, went_on, *sums)


@triton.jit(do_not_specialize=["num_positions", "num_lists"])
def cascade_kernel(
    pairs, lengths, last_clicks, after_click, attraction, after_skip, examined, went_on, later, sums,
    num_positions, num_lists, BLOCK: tl.constexpr,
):  # fmt: skip
    """One lane per list: up the list for P(no click from here on | examined), then down it for expected counts."""
    lists = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_list = lists < num_lists
    length = tl.load(lengths + lists, mask=is_list, other=0)
    skip_on = tl.load(after_skip)
    none_below = tl.full((BLOCK,), 1.0, tl.float64)
    for back in range(num_positions):
        k = num_positions - 1 - back
        is_shown = k < length
        row = lists + k.to(tl.int64) * num_lists
        a = tl.load(attraction + tl.load(pairs + row, mask=is_shown, other=0), mask=is_shown, other=0.0)
        none_below = tl.where(is_shown, (1.0 - a) * (1.0 - skip_on + skip_on * none_below), 1.0)
        tl.store(later + row, none_below, mask=is_list)
    # Other threads of the program may read what these have written.
    tl.debug_barrier()
    looking = tl.load(last_clicks + lists, mask=is_list, other=0.0)
    logs = tl.where(looking > 0.0, looking * tl.log(tl.where(looking > 0.0, none_below, 1.0)), 0.0)
    skips = tl.zeros((BLOCK,), tl.float64)
    gone_on = tl.zeros((BLOCK,), tl.float64)
    for k in range(num_positions):
        row = lists + tl.cast(k, tl.int64) * num_lists
        tl.store(examined + row, tl.where(k < length, looking, 0.0), mask=is_list)
        has_next = k + 1 < length
        skips += tl.where(has_next, looking, 0.0)
        below = tl.load(later + row + num_lists, mask=has_next, other=1.0)
        on = skip_on * below
        none = on + (1.0 - skip_on)
        looking = tl.where(has_next & (none != 0.0), looking * (on / tl.where(none != 0.0, none, 1.0)), 0.0)
        gone_on += looking
        count = tl.load(last_clicks + row + num_lists, mask=has_next, other=0.0)
        is_last = has_next & (count > 0.0)
        click_on = tl.load(after_click + row, mask=is_last, other=0.0)
        on = click_on * below
        none = on + (1.0 - click_on)
        x = tl.where(none != 0.0, on / tl.where(none != 0.0, none, 1.0), 0.0)
        tl.store(went_on + row, x, mask=is_last)
        looking += tl.where(is_last, count * x, 0.0)
        logs += tl.where(is_last, count * tl.log(tl.where(is_last, none, 1.0)), 0.0)
    tl.store(sums + lists, skips, mask=is_list)
    tl.store(sums + num_lists + lists, gone_on, mask=is_list)
    tl.store(sums + 2 * num_lists + lists, logs, mask=is_list)
