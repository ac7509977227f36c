"""The dynamic Bayesian network (Chapelle & Zhang 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.counting import ratio
from rankpolicy.clicks.models.cascade import CascadeModel, Counts, Moves
from rankpolicy.clicks.models.definition import PAIR, Axis, Parameters


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
    def after_click(
        cls, parameters: Parameters, pairs: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return (1 - parameters["satisfaction"][pairs]) * parameters["continuation"]

    @classmethod
    def after_skip(cls, parameters: Parameters) -> float:
        return float(parameters["continuation"][0])

    @classmethod
    def click_reward(
        cls, parameters: Parameters, pairs: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return parameters["satisfaction"][pairs]

    @classmethod
    def count_moves(cls, parameters: Parameters, moves: Moves, num_pairs: int) -> tuple[Counts, Counts]:
        satisfaction = parameters["satisfaction"][moves.pairs]
        stopped = satisfaction + (1 - satisfaction) * (1 - parameters["continuation"])
        satisfied = moves.counts * (1 - moves.went_on) * ratio(satisfaction, stopped)
        gone_on = (moves.counts * moves.went_on).sum() + moves.skips_gone_on
        tried = (moves.counts - satisfied).sum() + moves.skips
        successes = {
            "satisfaction": moves.by_pair(satisfied, num_pairs + 1),
            "continuation": np.array([gone_on]),
        }
        trials = {
            "satisfaction": moves.by_pair(moves.counts, num_pairs + 1),
            "continuation": np.array([tried]),
        }
        return successes, trials

    def relevance(self) -> NDArray[np.float64]:
        """attraction x satisfaction: P(clicked and satisfied | examined)."""
        return self.parameters["attraction"] * self.parameters["satisfaction"]
