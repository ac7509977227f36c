"""The position-based model (Richardson, Dominowska & Ragno 2007; Craswell et al. 2008)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.base import PAIR, POSITION, Parameters, User
from rankpolicy.clicks.models.examination import ExaminationModel


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionBased(ExaminationModel):
    """P(click at position k) = examination_k x attraction(query, item).

    Only products are identified: examination can be multiplied and attraction divided by one factor. Compare examination_k /
    examination_1 and attraction x examination_1.
    """

    name: ClassVar[str] = "pbm"
    title: ClassVar[str] = "position-based model"
    needs_sessions: ClassVar[bool] = False
    axes: ClassVar[Mapping[str, tuple[str | int, ...]]] = {"attraction": (PAIR,), "examination": (POSITION,)}

    @classmethod
    def start(cls, view: LogView) -> NDArray[Any]:
        return np.empty(0)

    @classmethod
    def slot(cls, position: int, state: NDArray[Any], num_positions: int) -> int:
        return position

    @classmethod
    def move(
        cls, parameters: Parameters, view: LogView, position: int, state: NDArray[Any], clicked: NDArray[np.bool_]
    ) -> NDArray[Any]:
        return state

    @classmethod
    def marginals(cls, parameters: Parameters, view: LogView) -> NDArray[np.float64]:
        return parameters["attraction"][view.pairs] * parameters["examination"][: view.num_positions]

    def user_of(self, query: str, items: Sequence[object]) -> User:
        examination = self._padded(len(items))["examination"][: len(items)]
        attraction = self.pair_values("attraction", query, items)
        return User(kind="pbm", attraction=attraction, satisfaction=np.empty(0), parameters=examination[None])
