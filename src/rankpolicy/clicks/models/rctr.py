"""Click-through rate by rank: only the position matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.base import ClickModel
from rankpolicy.clicks.models.definition import POSITION, Axis, Expectation, Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCTR(ClickModel):
    """P(click at position k) = rate_k = clicks / items shown there, the maximum likelihood in closed form.

    In terms of examination: position k is examined with probability rate_k, and everything that is examined is clicked.
    """

    name: ClassVar[str] = "rctr"
    title: ClassVar[str] = "click-through rate by rank"
    needs_sessions: ClassVar[bool] = False
    uses_em: ClassVar[bool] = False
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"rate": (POSITION,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        weights = view.weights
        return Expectation(successes={"rate": (weights * view.clicks).sum(0)}, trials={"rate": weights.sum(0)})

    @classmethod
    def attraction_of(cls, parameters: Parameters, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.ones(pairs.shape)

    @classmethod
    def examination_of(cls, parameters: Parameters, num_positions: int) -> NDArray[np.float64]:
        return parameters["rate"][:num_positions, None]

    def relevance(self) -> NDArray[np.float64]:
        """The mean rate, the same for every pair: this model does not distinguish items."""
        return np.full(len(self.pairs), self.parameters["rate"].mean())
