"""The cascade model (Craswell, Zoeter, Taylor & Ramsey 2008)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.cascade import CascadeModel
from rankpolicy.clicks.models.definition import PAIR, Axis, Expectation, Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade(CascadeModel):
    """The user examines one item after another and stops at the first click: after_click = 0, after_skip = 1.

    Maximum likelihood in closed form: attraction = clicks / how often the item was shown at the first click or above it. A second
    click is impossible in this model; it is not counted, and a log with one has the log-likelihood -inf.
    """

    name: ClassVar[str] = "cm"
    title: ClassVar[str] = "cascade model"
    uses_em: ClassVar[bool] = False
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"attraction": (PAIR,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        clicks_so_far = np.cumsum(view.clicks, 1)
        weights = view.weights * (clicks_so_far - view.clicks == 0)
        return Expectation(
            successes={"attraction": view.sum_by_pair(weights * view.clicks)},
            trials={"attraction": view.sum_by_pair(weights)},
        )

    @classmethod
    def after_click(
        cls, parameters: Parameters, pairs: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return np.zeros(1)
