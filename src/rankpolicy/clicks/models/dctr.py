"""Click-through rate by (query, item): the item alone decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.base import PAIR, Expectation, Parameters, User
from rankpolicy.clicks.models.independent import IndependentClicks


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCTR(IndependentClicks):
    """P(click on a pair) = attraction, its clicks / how often it was shown. Maximum likelihood in closed form."""

    name: ClassVar[str] = "dctr"
    title: ClassVar[str] = "click-through rate by query and item"
    uses_em: ClassVar[bool] = False
    axes: ClassVar[Mapping[str, tuple[str | int, ...]]] = {"attraction": (PAIR,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        weights = view.weights
        return Expectation(
            successes={"attraction": view.sum_by_pair(weights * view.clicks)},
            trials={"attraction": view.sum_by_pair(weights)},
        )

    @classmethod
    def rates(
        cls, parameters: Parameters, pairs: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return parameters["attraction"][pairs]

    def relevance(self) -> NDArray[np.float64]:
        return self.parameters["attraction"]

    def user_of(self, query: str, items: Sequence[object]) -> User:
        """A PBM user who examines everything."""
        return User(
            kind="pbm",
            attraction=self.pair_values("attraction", query, items),
            satisfaction=np.empty(0),
            parameters=np.ones((1, len(items))),
        )
