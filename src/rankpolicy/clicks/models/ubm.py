"""The user browsing model (Dupret & Piwowarski 2008)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.base import BEFORE, PAIR, POSITION, Parameters, User
from rankpolicy.clicks.models.examination import ExaminationModel


@dataclass(frozen=True, slots=True, kw_only=True)
class UserBrowsing(ExaminationModel):
    """P(click at position k | clicks above) = examination[k, r] x attraction(query, item), r the position of the last click above.

    ``examination`` (position, position + 1): row k counts from 0, column r is the last click counted from 1, 0 where there was none;
    cells with r > k cannot occur and keep the prior mean. Only products are identified, as in the PBM.
    """

    name: ClassVar[str] = "ubm"
    title: ClassVar[str] = "user browsing model"
    axes: ClassVar[Mapping[str, tuple[str | int, ...]]] = {"attraction": (PAIR,), "examination": (POSITION, BEFORE)}

    @classmethod
    def start(cls, view: LogView) -> NDArray[Any]:
        """The last click, counted from 1; 0 for none."""
        return np.zeros(len(view.pairs), np.int64)

    @classmethod
    def slot(cls, position: int, state: NDArray[Any], num_positions: int) -> NDArray[np.int64]:
        return position * (num_positions + 1) + state

    @classmethod
    def move(
        cls, parameters: Parameters, view: LogView, position: int, state: NDArray[Any], clicked: NDArray[np.bool_]
    ) -> NDArray[Any]:
        return np.where(clicked, position + 1, state)

    @classmethod
    def marginals(cls, parameters: Parameters, view: LogView) -> NDArray[np.float64]:
        """Sums over the last click: its distribution (session, position + 1) walks down the list."""
        last_click = np.zeros((len(view.pairs), view.num_positions + 1))
        last_click[:, 0] = 1.0
        result = np.empty(view.pairs.shape)
        for k in range(view.num_positions):
            attraction = parameters["attraction"][view.pairs[:, k], None]
            clicked = last_click[:, : k + 1] * parameters["examination"][k, : k + 1] * attraction
            last_click[:, : k + 1] -= clicked
            last_click[:, k + 1] = result[:, k] = clicked.sum(1)
        return result

    def user_of(self, query: str, items: Sequence[object]) -> User:
        n = len(items)
        examination = self._padded(n)["examination"][:n, : n + 1]
        attraction = self.pair_values("attraction", query, items)
        return User(kind="ubm", attraction=attraction, satisfaction=np.empty(0), parameters=examination)
