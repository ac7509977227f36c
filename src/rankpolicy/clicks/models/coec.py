"""Clicks over expected clicks, the judgments of OpenSearch's search relevance workbench."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankpolicy.clicks.log.log_pairs import LogView
from rankpolicy.clicks.log.row_counts import ratio
from rankpolicy.clicks.models.click_model import ClickModel
from rankpolicy.clicks.models.definition import PAIR, POSITION, Axis, Expectation, Floats, Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class ClicksOverExpected(ClickModel):
    """P(click on a pair at position k) = examination_k attraction, with examination_k = click-through at k / the highest of all positions.

    COEC of a pair = its clicks / sum of the click-through rates of the positions where it was shown (Zhang & Jones 2007). Without a prior
    attraction = COEC x the highest click-through rate, at most 1, so both order pairs alike. It is a position-based model that takes all
    positions for equally relevant: those that hold better items look as if they were examined more.
    """

    name: ClassVar[str] = "coec"
    title: ClassVar[str] = "clicks over expected clicks"
    needs_sessions: ClassVar[bool] = False
    uses_em: ClassVar[bool] = False
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"attraction": (PAIR,), "examination": (POSITION,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        weights = view.weights
        clicks, shown = (weights * view.clicks).sum(0), weights.sum(0)
        highest = max(ratio(clicks, shown).max(), np.finfo(float).tiny)
        expected = weights * ratio(clicks, shown * highest)
        return Expectation(
            successes={"attraction": view.sum_by_pair(weights * view.clicks), "examination": clicks},
            trials={"attraction": view.sum_by_pair(expected), "examination": shown * highest},
        )

    @classmethod
    def examination_of(cls, parameters: Parameters, num_positions: int) -> Floats:
        return parameters["examination"][:num_positions, None]
