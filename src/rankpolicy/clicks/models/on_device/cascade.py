"""The E step of cascade models on a CUDA device; clicks/models/cascade.py is the specification, and members keep their formulas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from rankpolicy.clicks.models.on_device.counting import DeviceView, counted, distinct_rows, sums
from rankpolicy.clicks.models.on_device.expectation import DeviceExpectation, DeviceParameters, DeviceStep
from rankpolicy.kernels.triton.click_models import examine_lists
from rankpolicy.kernels.triton.segment_sums import SegmentSums


class MoveSums:
    """How numbers of moves are added up, by pair and by position; the orders are made when they are first used.

    Parameters
    ----------
    pairs, positions
        Of each move (move,).
    num_pairs, num_positions
        How many sums there are of each.
    """

    def __init__(self, pairs: Tensor, positions: Tensor, num_pairs: int, num_positions: int) -> None:
        self.pairs, self.positions = pairs, positions
        self.num_pairs, self.num_positions = num_pairs, num_positions

    @cached_property
    def by_pair(self) -> SegmentSums:
        """Sums by pair."""
        return SegmentSums(self.pairs, self.num_pairs)

    @cached_property
    def by_position(self) -> SegmentSums:
        """Sums by position."""
        return SegmentSums(self.positions, self.num_positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMoves:
    """Moves (clicks/models/cascade.py) as tensors, and the arithmetic that members' formulas ask for."""

    pairs: Tensor
    positions: Tensor
    counts: Tensor
    went_on: Tensor
    skips: Tensor
    skips_gone_on: Tensor
    sums: MoveSums

    def by_pair(self, values: Tensor, size: int) -> Tensor:
        """Sums of values of moves by pair (size,)."""
        assert size == self.sums.num_pairs
        return self.sums.by_pair(values)

    def by_position(self, values: Tensor, size: int) -> Tensor:
        """Sums of values of moves by position (size,)."""
        assert size == self.sums.num_positions
        return self.sums.by_position(values)

    def ratio(self, numerator: Tensor, denominator: Tensor) -> Tensor:
        """The quotient, 0 where the denominator is 0."""
        is_zero = denominator == 0
        return torch.where(is_zero, 0.0, numerator / torch.where(is_zero, 1.0, denominator))

    def numbers(self, *values: Tensor) -> Tensor:
        """Numbers as an array."""
        return torch.stack([value.reshape(()) for value in values])


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLists:
    """As ListCounts (clicks/log/list_counts.py), with positions before lists so that neighbouring lanes read neighbours."""

    pairs: Tensor  # (position, list) int32
    lengths: Tensor  # (list,) int32
    last_clicks: Tensor  # (position + 1, list)
    shown_sums: SegmentSums  # of (position, list) by pair
    clicks: Tensor  # (pair + 1,)
    shown_above: Tensor  # (pair + 1,)
    skips_above: Tensor  # (1,)
    num_passed: int
    move_pairs: Tensor
    move_positions: Tensor
    move_counts: Tensor
    last_cells: Tensor  # (last,) where last clicks stand in (position, list)
    move_sums: MoveSums


def cascade_step(kind: Any, view: DeviceView) -> DeviceStep:
    """The E step of a cascade model on a log."""
    lists = count_lists(view)

    def expect(parameters: DeviceParameters) -> DeviceExpectation:
        attraction = parameters["attraction"]
        after_skip = attraction.new_tensor([kind.after_skip(parameters)])
        each = kind.after_click(parameters, lists.move_pairs, lists.move_positions)
        after_click = each.expand(lists.move_pairs.shape)
        of_cells = attraction.new_zeros(lists.pairs.shape)
        of_cells.view(-1)[lists.last_cells] = after_click[lists.num_passed :]
        found = examine_lists(lists.pairs, lists.lengths, lists.last_clicks, of_cells, attraction, after_skip)
        went_on = found.went_on.reshape(-1)[lists.last_cells]
        moves = DeviceMoves(
            pairs=lists.move_pairs,
            positions=lists.move_positions,
            counts=lists.move_counts,
            went_on=torch.cat([went_on.new_ones(lists.num_passed), went_on]),
            skips=lists.skips_above + found.skips.sum(),
            skips_gone_on=lists.skips_above + found.gone_on.sum(),
            sums=lists.move_sums,
        )
        passed = slice(lists.num_passed)
        log_likelihood = (
            _weighted_log(lists.clicks, attraction)
            + _weighted_log(lists.shown_above - lists.clicks, 1 - attraction)
            + _weighted_log(lists.move_counts[passed], after_click[passed])
            + _weighted_log(lists.skips_above, after_skip)
            + found.logs.sum()
        )
        successes, trials = kind.count_moves(parameters, moves, len(lists.clicks) - 1)
        successes["attraction"] = lists.clicks + successes.get("attraction", 0.0)
        trials["attraction"] = (
            lists.shown_above + lists.shown_sums(found.examined.view(-1)) + trials.get("attraction", 0.0)
        )
        return DeviceExpectation(successes=successes, trials=trials, log_likelihood=log_likelihood)

    return expect


def _weighted_log(weights: Tensor, probabilities: Tensor) -> Tensor:
    return torch.xlogy(weights, probabilities).sum()


def count_lists(view: DeviceView) -> DeviceLists:
    """Count a log, as clicks/log/list_counts.py."""
    width = view.pairs.shape[1]
    num_sums, device = view.num_pairs + 1, view.pairs.device
    first, inverse = distinct_rows(view.pairs)
    # By query: neighbouring lists then read neighbouring parameters.
    order = torch.argsort(view.queries[first], stable=True)
    first = first[order]
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=device)
    list_of_session = place[inverse]
    pairs, is_shown = view.pairs[first], view.is_shown[first]
    lengths, num_lists = is_shown.sum(1), len(first)

    sessions, positions = view.clicks.nonzero(as_tuple=True)
    clicks = sums(list_of_session[sessions] * width + positions, view.counts[sessions], num_lists * width)
    clicks = clicks.reshape(-1, width)
    marked = torch.where(view.clicks, torch.arange(1, width + 1, device=device), 0)
    last = marked.amax(1)  # counted from 1; 0 for none
    last_clicks = sums(list_of_session * (width + 1) + last, view.counts, num_lists * (width + 1))
    last_clicks = last_clicks.reshape(-1, width + 1)

    at_or_below = last_clicks[:, 1:].flip(1).cumsum(1).flip(1)  # sessions whose last click is here or further down
    passed = clicks - last_clicks[:, 1:]
    skipped = at_or_below - last_clicks[:, 1:] - passed
    rows, columns = passed.nonzero(as_tuple=True)
    keys, passed_counts = counted(pairs[rows, columns] * width + columns, passed[rows, columns])
    is_last = (last_clicks[:, 1:] > 0) & (torch.arange(1, width + 1, device=device) < lengths[:, None])
    last_lists, last_columns = is_last.nonzero(as_tuple=True)
    move_pairs = torch.cat([keys // width, pairs[last_lists, last_columns]])
    move_positions = torch.cat([keys % width, last_columns])
    shown_cells = is_shown.T.reshape(-1).nonzero().squeeze(1)
    by_position = pairs.T.contiguous()
    return DeviceLists(
        pairs=by_position.int(),
        lengths=lengths.int(),
        last_clicks=last_clicks.T.contiguous(),
        shown_sums=SegmentSums(by_position.view(-1)[shown_cells], num_sums, places=shown_cells),
        clicks=sums(pairs, clicks, num_sums),
        shown_above=sums(pairs, at_or_below, num_sums),
        skips_above=skipped.sum().reshape(1),
        num_passed=len(keys),
        move_pairs=move_pairs,
        move_positions=move_positions,
        move_counts=torch.cat([passed_counts, last_clicks[last_lists, last_columns + 1]]),
        last_cells=last_columns * num_lists + last_lists,
        move_sums=MoveSums(move_pairs, move_positions, num_sums, width),
    )
