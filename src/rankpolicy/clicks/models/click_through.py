"""Click-through rates, the baselines of all click models: of everything, by rank, and by query and item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankpolicy.clicks.log.log_pairs import LogView
from rankpolicy.clicks.models.click_model import ClickModel
from rankpolicy.clicks.models.definition import PAIR, POSITION, Axis, Codes, Expectation, Floats, Parameters


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
    def attraction_of(cls, parameters: Parameters, pairs: Codes) -> Floats:
        return np.full(pairs.shape, parameters["rate"][0])


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCTR(ClickModel):
    """P(click at position k) = rate_k = clicks / items shown there, the maximum likelihood in closed form.

    In terms of examination: position k is examined with probability rate_k, and everything that is examined is clicked.
    """

    name: ClassVar[str] = "rctr"
    title: ClassVar[str] = "click-through rate by rank"
    needs_sessions: ClassVar[bool] = False
    uses_em: ClassVar[bool] = False
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"rate": (POSITION,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        weights = view.weights
        return Expectation(successes={"rate": (weights * view.clicks).sum(0)}, trials={"rate": weights.sum(0)})

    @classmethod
    def attraction_of(cls, parameters: Parameters, pairs: Codes) -> Floats:
        return np.ones(pairs.shape)

    @classmethod
    def examination_of(cls, parameters: Parameters, num_positions: int) -> Floats:
        return parameters["rate"][:num_positions, None]

    def relevance(self) -> Floats:
        """The mean rate, the same for every pair: this model does not distinguish items."""
        return np.full(len(self.pairs), self.parameters["rate"].mean())


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
