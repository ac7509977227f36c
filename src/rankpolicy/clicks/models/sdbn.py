"""The simplified dynamic Bayesian network (Chapelle & Zhang 2009, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.cascade import CascadeModel, Counts, Moves, stopped_at_last_click
from rankpolicy.clicks.models.definition import PAIR, Axis, Expectation, Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class SimplifiedDBN(CascadeModel):
    """A DBN whose continuation is 1: after a click the user is satisfied with probability satisfaction(query, item), and only then the
    session ends: after_click = 1 - satisfaction, after_skip = 1.

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
    def after_click(
        cls, parameters: Parameters, pairs: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return 1 - parameters["satisfaction"][pairs]

    @classmethod
    def click_reward(
        cls, parameters: Parameters, pairs: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return parameters["satisfaction"][pairs]

    @classmethod
    def count_moves(cls, parameters: Parameters, moves: Moves, num_pairs: int) -> tuple[Counts, Counts]:
        satisfied = moves.by_pair(moves.counts * (1 - moves.went_on), num_pairs + 1)
        return {"satisfaction": satisfied}, {"satisfaction": moves.by_pair(moves.counts, num_pairs + 1)}

    def relevance(self) -> NDArray[np.float64]:
        """attraction x satisfaction: P(clicked and satisfied | examined)."""
        return self.parameters["attraction"] * self.parameters["satisfaction"]
