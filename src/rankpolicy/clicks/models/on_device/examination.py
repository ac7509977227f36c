"""The E step of PBM and UBM on a CUDA device; clicks/models/examination.py is the specification."""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.clicks.models.on_device.counting import DeviceView, counted, sums
from rankpolicy.clicks.models.on_device.expectation import DeviceExpectation, DeviceParameters, DeviceStep
from rankpolicy.kernels.triton.click_models import examine_cells
from rankpolicy.kernels.triton.segment_sums import SegmentSums


def examination_step(view: DeviceView, num_columns: int) -> DeviceStep:
    """The E step on a log whose examination parameters have ``num_columns`` for each position.

    The cells of the log are its pairs by slot, with their clicks and their impressions without click.
    """
    num_slots, num_sums = view.num_positions * num_columns, view.num_pairs + 1
    parts = []
    for own in view.parts():
        shown = own.is_shown
        keys = (own.pairs * num_slots + _slots(own, num_columns))[shown]
        counts = own.counts[:, None].expand(shown.shape)[shown]
        is_click = own.clicks[shown].double()
        parts.append(counted(keys, counts * is_click, counts * (1 - is_click)))
    keys, clicks, skips = parts[0]
    if len(parts) > 1:
        keys, clicks, skips = counted(*(torch.cat(arrays) for arrays in zip(*parts, strict=True)))
    pairs, slots = keys // num_slots, keys % num_slots
    sum_by_pair, sum_by_slot = SegmentSums(pairs, num_sums), SegmentSums(slots, num_slots)
    clicks_of_pairs, shown_by_slot = sums(pairs, clicks, num_sums), sums(slots, clicks + skips, num_slots)
    cells = pairs.int(), slots.int(), clicks, skips

    def expect(parameters: DeviceParameters) -> DeviceExpectation:
        shape = parameters["examination"].shape
        examined, logs = examine_cells(*cells, parameters["attraction"], parameters["examination"].reshape(-1))
        return DeviceExpectation(
            successes={"attraction": clicks_of_pairs, "examination": sum_by_slot(examined).reshape(shape)},
            trials={"attraction": sum_by_pair(examined), "examination": shown_by_slot.reshape(shape)},
            log_likelihood=logs.sum(),
        )

    return expect


def _slots(view: DeviceView, num_columns: int) -> Tensor:
    """The slot behind each mark (session, position)."""
    num_sessions, num_positions = view.pairs.shape
    positions = torch.arange(num_positions, device=view.pairs.device)
    if num_columns == 1:
        return positions.expand(num_sessions, -1)
    clicked_here = torch.where(view.clicks, positions + 1, 0)
    last_click = torch.nn.functional.pad(clicked_here.cummax(1).values, (1, 0))[:, :-1]
    return positions * num_columns + last_click
