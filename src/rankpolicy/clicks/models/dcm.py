"""The dependent click model (Guo, Liu & Wang 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.clicks.log.log_pairs import LogView
from rankpolicy.clicks.log.row_counts import weighted_counts
from rankpolicy.clicks.models.cascade import CascadeModel, Counts, Moves, stopped_at_last_click
from rankpolicy.clicks.models.definition import PAIR, POSITION, Axis, Codes, Expectation, Floats, Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class DependentClick(CascadeModel):
    """After a click at position k the user stops with probability stop_k: after_click = 1 - stop_k, after_skip = 1.

    EM starts from the paper's estimate, which takes the last click for a stop (``iterations=0`` keeps it), and continues to maximum
    likelihood. What happens after a click on the last position leaves no trace: there stop keeps the prior mean.
    """

    name: ClassVar[str] = "dcm"
    title: ClassVar[str] = "dependent click model"
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"attraction": (PAIR,), "stop": (POSITION,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        return stopped_at_last_click(cls, view)

    @classmethod
    def after_click(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        return 1 - parameters["stop"][positions]

    @classmethod
    def click_reward(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        return parameters["stop"][positions]

    @classmethod
    def count_moves(cls, parameters: Parameters, moves: Moves, num_pairs: int) -> tuple[Counts, Counts]:
        num_positions = len(parameters["stop"])
        stops = weighted_counts(moves.positions, moves.counts * (1 - moves.went_on), num_positions)
        return {"stop": stops}, {"stop": weighted_counts(moves.positions, moves.counts, num_positions)}
