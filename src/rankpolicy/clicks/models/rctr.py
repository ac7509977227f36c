"""Click-through rate by rank: the position alone decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.base import POSITION, Expectation, Parameters, User
from rankpolicy.clicks.models.independent import IndependentClicks


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCTR(IndependentClicks):
    """P(click at position k) = rate_k, clicks / items shown there. Maximum likelihood in closed form."""

    name: ClassVar[str] = "rctr"
    title: ClassVar[str] = "click-through rate by rank"
    uses_em: ClassVar[bool] = False
    axes: ClassVar[Mapping[str, tuple[str | int, ...]]] = {"rate": (POSITION,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        weights = view.weights
        return Expectation(successes={"rate": (weights * view.clicks).sum(0)}, trials={"rate": weights.sum(0)})

    @classmethod
    def rates(
        cls, parameters: Parameters, pairs: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return parameters["rate"][positions]

    @classmethod
    def attraction_of(cls, parameters: Parameters, view: LogView) -> NDArray[np.float64]:
        return np.ones(view.pairs.shape)

    def relevance(self) -> NDArray[np.float64]:
        """The mean rate for every pair: this model knows no difference between items."""
        return np.full(len(self.pairs), self.parameters["rate"].mean())

    def user_of(self, query: str, items: Sequence[object]) -> User:
        """A PBM user whom everything examined attracts."""
        rates = self._padded(len(items))["rate"][: len(items)]
        return User(kind="pbm", attraction=np.ones(len(items)), satisfaction=np.empty(0), parameters=rates[None])
