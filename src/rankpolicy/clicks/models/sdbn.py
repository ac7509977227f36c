"""The simplified dynamic Bayesian network (Chapelle & Zhang 2009, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.distinct import weighted_counts
from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.base import PAIR, Expectation, Parameters, User
from rankpolicy.clicks.models.cascade import CascadeModel, Moves, stopped_at_last_click


@dataclass(frozen=True, slots=True, kw_only=True)
class SimplifiedDBN(CascadeModel):
    """A click satisfies with probability satisfaction(query, item), and only then the user stops: after_click = 1 - satisfaction.

    EM starts from the paper's estimate, which takes the last click for the one that satisfied (``iterations=0`` keeps it), and goes
    on to maximum likelihood.
    """

    name: ClassVar[str] = "sdbn"
    title: ClassVar[str] = "simplified dynamic Bayesian network"
    axes: ClassVar[Mapping[str, tuple[str | int, ...]]] = {"attraction": (PAIR,), "satisfaction": (PAIR,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        return stopped_at_last_click(cls, view)

    @classmethod
    def after_click(
        cls, parameters: Parameters, pairs: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return 1 - parameters["satisfaction"][pairs]

    @classmethod
    def count_moves(cls, parameters: Parameters, moves: Moves, num_pairs: int) -> tuple[Parameters, Parameters]:
        satisfied = weighted_counts(moves.pairs, moves.counts * (1 - moves.went_on), num_pairs + 1)
        return {"satisfaction": satisfied}, {"satisfaction": weighted_counts(moves.pairs, moves.counts, num_pairs + 1)}

    def relevance(self) -> NDArray[np.float64]:
        """attraction x satisfaction: clicked, and content with what was found."""
        return self.parameters["attraction"] * self.parameters["satisfaction"]

    def user_of(self, query: str, items: Sequence[object]) -> User:
        """A DBN user who never gives up."""
        return User(
            kind="dbn",
            attraction=self.pair_values("attraction", query, items),
            satisfaction=self.pair_values("satisfaction", query, items),
            parameters=np.ones((1, 1)),
        )
