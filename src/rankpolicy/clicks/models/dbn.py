"""The dynamic Bayesian network and its simplified form (Chapelle & Zhang 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankpolicy.clicks.log.log_pairs import LogView
from rankpolicy.clicks.log.row_counts import ratio, weighted_counts
from rankpolicy.clicks.models.cascade import CascadeModel, Counts, Moves, stopped_at_last_click
from rankpolicy.clicks.models.definition import PAIR, Axis, Codes, Expectation, Floats, Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicBayesian(CascadeModel):
    """After a click the user is satisfied with probability satisfaction(query, item) and the session ends; a user who is not satisfied,
    or has not clicked, goes on with probability continuation: after_click = (1 - satisfaction) continuation, after_skip = continuation.

    A user who stopped after a click was satisfied with probability satisfaction / (satisfaction + (1 - satisfaction) (1 -
    continuation)); a user who went on was not.
    """

    name: ClassVar[str] = "dbn"
    title: ClassVar[str] = "dynamic Bayesian network"
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {
        "attraction": (PAIR,),
        "satisfaction": (PAIR,),
        "continuation": (1,),
    }

    @classmethod
    def after_click(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        return (1 - parameters["satisfaction"][pairs]) * parameters["continuation"]

    @classmethod
    def after_skip(cls, parameters: Parameters) -> float:
        return float(parameters["continuation"][0])

    @classmethod
    def click_reward(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        return parameters["satisfaction"][pairs]

    @classmethod
    def count_moves(cls, parameters: Parameters, moves: Moves, num_pairs: int) -> tuple[Counts, Counts]:
        satisfaction = parameters["satisfaction"][moves.pairs]
        stopped = satisfaction + (1 - satisfaction) * (1 - parameters["continuation"])
        satisfied = moves.counts * (1 - moves.went_on) * ratio(satisfaction, stopped)
        gone_on = (moves.counts * moves.went_on).sum() + moves.skips_gone_on
        tried = (moves.counts - satisfied).sum() + moves.skips
        successes = {
            "satisfaction": weighted_counts(moves.pairs, satisfied, num_pairs + 1),
            "continuation": np.array([gone_on]),
        }
        trials = {
            "satisfaction": weighted_counts(moves.pairs, moves.counts, num_pairs + 1),
            "continuation": np.array([tried]),
        }
        return successes, trials

    def relevance(self) -> Floats:
        """attraction x satisfaction: P(clicked and satisfied | examined)."""
        return self.parameters["attraction"] * self.parameters["satisfaction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimplifiedDBN(DynamicBayesian):
    """A DBN whose continuation is 1 (section 5): after a click the user is satisfied with probability satisfaction(query, item), and only
    then the session ends: after_click = 1 - satisfaction, after_skip = 1.

    EM starts from the paper's estimate, which takes the last click for the satisfying one (``iterations=0`` keeps it), and continues to
    maximum likelihood.
    """

    name: ClassVar[str] = "sdbn"
    title: ClassVar[str] = "simplified dynamic Bayesian network"
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"attraction": (PAIR,), "satisfaction": (PAIR,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        return stopped_at_last_click(cls, view)

    @classmethod
    def after_click(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        return 1 - parameters["satisfaction"][pairs]

    @classmethod
    def after_skip(cls, parameters: Parameters) -> float:
        return 1.0

    @classmethod
    def count_moves(cls, parameters: Parameters, moves: Moves, num_pairs: int) -> tuple[Counts, Counts]:
        satisfied = weighted_counts(moves.pairs, moves.counts * (1 - moves.went_on), num_pairs + 1)
        return {"satisfaction": satisfied}, {"satisfaction": weighted_counts(moves.pairs, moves.counts, num_pairs + 1)}
