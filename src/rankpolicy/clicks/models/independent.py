"""Models in which clicks do not depend on one another: P(click) is known before any click is."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.base import ClickModel, Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentClicks(ClickModel):
    """A user without memory, so the state is nothing."""

    needs_sessions: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def rates(
        cls, parameters: Parameters, pairs: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """P(click) of these pairs at these positions, as far as both broadcast."""

    @classmethod
    def start(cls, view: LogView) -> NDArray[Any]:
        return np.empty(0)

    @classmethod
    def probability(
        cls, parameters: Parameters, view: LogView, position: int, state: NDArray[Any]
    ) -> NDArray[np.float64]:
        return np.broadcast_to(
            cls.rates(parameters, view.pairs[:, position], np.array([position])), view.pairs.shape[:1]
        )

    @classmethod
    def move(
        cls, parameters: Parameters, view: LogView, position: int, state: NDArray[Any], clicked: NDArray[np.bool_]
    ) -> NDArray[Any]:
        return state

    @classmethod
    def marginals(cls, parameters: Parameters, view: LogView) -> NDArray[np.float64]:
        return np.broadcast_to(cls.rates(parameters, view.pairs, np.arange(view.num_positions)), view.pairs.shape)
