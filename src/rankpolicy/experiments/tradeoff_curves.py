"""Curves of utility against disparity, a line a method: the points, which of them nothing beats, and how much they cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.experiments.pareto import Aims, hypervolume, on_pareto_front
from rankpolicy.settings import plain

STRENGTH, BOUND = "strength", "max_disparity"  # the settings that are swept


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedValue:
    """One fitted ranker, measured."""

    seed: int
    utility: float
    disparity: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TradeoffPoint:
    """A method at one strength (or one bound on its disparity; neither where it has no such setting), over all seeds."""

    method: str
    strength: float | None
    max_disparity: float | None
    per_seed: tuple[SeedValue, ...]
    exposure: NDArray[np.float64]  # (items,) of the first seed's test data
    notes: tuple[str, ...] = ()  # warnings of the training, each once

    @property
    def aims(self) -> Aims:
        """Means over seeds."""
        return Aims(
            utility=float(np.mean([value.utility for value in self.per_seed])),
            disparity=float(np.mean([value.disparity for value in self.per_seed])),
        )

    @property
    def spread(self) -> Aims | None:
        """Standard deviations between seeds; None of a single one."""
        if len(self.per_seed) < 2:
            return None
        return Aims(
            utility=float(np.std([value.utility for value in self.per_seed], ddof=1)),
            disparity=float(np.std([value.disparity for value in self.per_seed], ddof=1)),
        )

    @property
    def label(self) -> str:
        """What was set, in words: ``strength 0.1``."""
        return label_of(self.strength, self.max_disparity)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tradeoff:
    """What ``sweep_tradeoff`` found; methods and strengths in the order asked for."""

    curves: dict[str, tuple[TradeoffPoint, ...]]
    settings: dict[str, dict[str, Any]]  # of each method, besides the one that was swept
    reward: str
    fairness: str
    merit: str
    uniform: Aims  # of the policy to which all rankings are alike, mean over seeds
    num_queries: tuple[int, ...]  # of the test data of each seed
    left_out: tuple[dict[str, int], ...]  # of each seed, test queries that have no disparity, by reason
    reference: Aims  # of the hypervolumes

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self.curves)

    @property
    def points(self) -> tuple[TradeoffPoint, ...]:
        return tuple(point for curve in self.curves.values() for point in curve)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(value.seed for value in self.points[0].per_seed)

    @property
    def pareto(self) -> tuple[TradeoffPoint, ...]:
        """The points that no point of any method beats, fairest first."""
        points = self.points
        front = on_pareto_front([point.aims for point in points])
        return tuple(
            sorted((p for p, is_on in zip(points, front, strict=True) if is_on), key=lambda p: p.aims.disparity)
        )

    @property
    def hypervolume(self) -> dict[str, float]:
        """Of each method, the area between its curve and the reference point; more is better."""
        return {
            method: hypervolume([point.aims for point in curve], self.reference)
            for method, curve in self.curves.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Curves, Pareto front, hypervolumes and what was measured, as plain values."""
        pareto = self.pareto
        return {
            "curves": {
                method: [_point_to_json(point) | {"is_pareto": point in pareto} for point in curve]
                for method, curve in self.curves.items()
            },
            "pareto": [
                {"method": point.method, "strength": point.strength, BOUND: point.max_disparity, **point.aims._asdict()}
                for point in pareto
            ],
            "hypervolume": self.hypervolume,
            "reference": self.reference._asdict(),
            "uniform": self.uniform._asdict(),
            "reward": self.reward,
            "fairness": self.fairness,
            "merit": self.merit,
            "seeds": list(self.seeds),
            "queries": list(self.num_queries),
            "queries_left_out": list(self.left_out),
            "settings": {
                method: {name: plain(value) for name, value in settings.items()}
                for method, settings in self.settings.items()
            },
        }


def _point_to_json(point: TradeoffPoint) -> dict[str, Any]:
    spread = point.spread
    return {
        "strength": point.strength,
        BOUND: point.max_disparity,
        **point.aims._asdict(),
        "utility_spread": None if spread is None else spread.utility,
        "disparity_spread": None if spread is None else spread.disparity,
        "per_seed": [
            {"seed": value.seed, "utility": value.utility, "disparity": value.disparity} for value in point.per_seed
        ],
        "notes": list(point.notes),
    }


def label_of(strength: float | None, bound: float | None) -> str:
    """What was set, in words."""
    if strength is not None:
        return f"strength {strength:g}"
    return "" if bound is None else f"disparity ≤ {bound:g}"
