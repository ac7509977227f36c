"""The global click-through rate: every item everywhere has one and the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.base import Expectation, Parameters, User
from rankpolicy.clicks.models.independent import IndependentClicks


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalCTR(IndependentClicks):
    """P(click) = rate, clicks / items shown. Maximum likelihood in closed form; the model to beat."""

    name: ClassVar[str] = "gctr"
    title: ClassVar[str] = "global click-through rate"
    uses_em: ClassVar[bool] = False
    axes: ClassVar[Mapping[str, tuple[str | int, ...]]] = {"rate": (1,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        weights = view.weights
        return Expectation(
            successes={"rate": (weights * view.clicks).sum(keepdims=True).ravel()},
            trials={"rate": weights.sum(keepdims=True).ravel()},
        )

    @classmethod
    def rates(
        cls, parameters: Parameters, pairs: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return parameters["rate"]

    @classmethod
    def attraction_of(cls, parameters: Parameters, view: LogView) -> NDArray[np.float64]:
        return np.full(view.pairs.shape, parameters["rate"][0])

    def relevance(self) -> NDArray[np.float64]:
        """The same for every pair: this model knows no difference."""
        return np.full(len(self.pairs), self.parameters["rate"][0])

    def user_of(self, query: str, items: Sequence[object]) -> User:
        """A PBM user who examines everything."""
        return User(
            kind="pbm",
            attraction=np.full(len(items), self.parameters["rate"][0]),
            satisfaction=np.empty(0),
            parameters=np.ones((1, len(items))),
        )
