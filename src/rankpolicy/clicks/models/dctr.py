"""Click-through rate by (query, item): only the item matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.base import ClickModel
from rankpolicy.clicks.models.definition import PAIR, Axis, Expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCTR(ClickModel):
    """P(click on a pair) = attraction = its clicks / how often it was shown, the maximum likelihood in closed form."""

    name: ClassVar[str] = "dctr"
    title: ClassVar[str] = "click-through rate by query and item"
    needs_sessions: ClassVar[bool] = False
    uses_em: ClassVar[bool] = False
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"attraction": (PAIR,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        weights = view.weights
        return Expectation(
            successes={"attraction": view.sum_by_pair(weights * view.clicks)},
            trials={"attraction": view.sum_by_pair(weights)},
        )
