"""The global click-through rate: the same for every item at every position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.base import ClickModel
from rankpolicy.clicks.models.definition import Axis, Expectation, Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalCTR(ClickModel):
    """P(click) = rate = clicks / items shown, the maximum likelihood in closed form; the baseline for all others."""

    name: ClassVar[str] = "gctr"
    title: ClassVar[str] = "global click-through rate"
    needs_sessions: ClassVar[bool] = False
    uses_em: ClassVar[bool] = False
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"rate": (1,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        weights = view.weights
        return Expectation(
            successes={"rate": np.array([(weights * view.clicks).sum()])}, trials={"rate": np.array([weights.sum()])}
        )

    @classmethod
    def attraction_of(cls, parameters: Parameters, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full(pairs.shape, parameters["rate"][0])
