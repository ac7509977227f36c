"""Points that trade utility against disparity: Pareto front, hypervolume, and one curve per method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.declarations.settings import plain
from rankpolicy.display import short_repr
from rankpolicy.fairness import FairnessAim


class UtilityDisparity(NamedTuple):
    """Utility and disparity of a policy: one point of a trade-off.

    Parameters
    ----------
    utility
        Expected reward; higher is better.
    disparity
        Disparity of exposure; lower is better.
    """

    utility: float
    disparity: float


@checked_kinds
def on_pareto_front(points: Sequence[UtilityDisparity]) -> list[bool]:
    """Whether each point is on the Pareto front: no other point is at least as good in both values and better in one.

    Parameters
    ----------
    points
        The points to compare; equal points do not exclude each other.

    >>> on_pareto_front([UtilityDisparity(0.9, 0.3), UtilityDisparity(0.8, 0.1), UtilityDisparity(0.8, 0.2), UtilityDisparity(0.7, 0.1)])
    [True, True, False, False]
    """
    return [not any(_dominates(other, point) for other in points) for point in points]


@checked_kinds
def hypervolume(points: Sequence[UtilityDisparity], reference: UtilityDisparity) -> float:
    """The area dominated by at least one point, bounded by the reference point.

    Parameters
    ----------
    points
        The points; one that is worse than the reference in utility or disparity adds nothing.
    reference
        The corner of the area: a utility and a disparity that every point of interest improves on.

    >>> points = [UtilityDisparity(1.0, 0.5), UtilityDisparity(0.75, 0.25)]
    >>> hypervolume(points, UtilityDisparity(0.5, 1.0))  # 0.25 * 0.75 + 0.25 * 0.5
    0.3125
    """
    inside = sorted(
        {point for point in points if point.utility > reference.utility and point.disparity < reference.disparity},
        key=lambda point: (point.disparity, -point.utility),
    )
    area, covered_to = 0.0, reference.utility
    for point in inside:
        if point.utility > covered_to:
            area += (point.utility - covered_to) * (reference.disparity - point.disparity)
            covered_to = point.utility
    return area


def _dominates(a: UtilityDisparity, b: UtilityDisparity) -> bool:
    return a.utility >= b.utility and a.disparity <= b.disparity and a != b


STRENGTH, BOUND = "strength", "max_disparity"  # the settings that are swept


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedValue:
    """Utility and disparity of one fitted ranker on test data.

    Parameters
    ----------
    seed
        The random state of the ranker.
    utility, disparity
        Means over the test queries.
    """

    seed: int
    utility: float
    disparity: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TradeoffPoint:
    """A method at one strength, or at one bound on its disparity, over all seeds.

    Parameters
    ----------
    method
        Name of the method.
    strength, max_disparity
        The value of the setting that was swept; the other is None. Both are None for a method with neither setting.
    per_seed
        The values of each seed.
    exposure
        Expected exposure of the items (items,) of the first seed's test data.
    notes
        Warnings of the training, each once.
    """

    method: str
    strength: float | None
    max_disparity: float | None
    per_seed: tuple[SeedValue, ...]
    exposure: NDArray[np.float64]
    notes: tuple[str, ...] = ()

    __repr__ = short_repr

    @property
    def mean(self) -> UtilityDisparity:
        """Means over seeds."""
        return UtilityDisparity(
            utility=float(np.mean([value.utility for value in self.per_seed])),
            disparity=float(np.mean([value.disparity for value in self.per_seed])),
        )

    @property
    def standard_deviation(self) -> UtilityDisparity | None:
        """Standard deviations over seeds; None for a single seed."""
        if len(self.per_seed) < 2:
            return None
        return UtilityDisparity(
            utility=float(np.std([value.utility for value in self.per_seed], ddof=1)),
            disparity=float(np.std([value.disparity for value in self.per_seed], ddof=1)),
        )

    @property
    def label(self) -> str:
        """The setting that was swept, in words: ``strength 0.1``."""
        return swept_setting_in_words(self.strength, self.max_disparity)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tradeoff:
    """The result of ``sweep_tradeoff``: methods and strengths in the order they were given.

    Parameters
    ----------
    curves
        The points of each method.
    settings
        The settings of each method, besides the one that was swept.
    reward
        What utility measures.
    fairness
        What disparity measures.
    uniform
        The uniform random policy, as a reference point; mean over seeds.
    num_queries
        Number of test queries for each seed.
    left_out
        For each seed, the number of test queries without a disparity, by reason.
    reference
        The reference point of the hypervolumes.
    """

    curves: dict[str, tuple[TradeoffPoint, ...]]
    settings: dict[str, dict[str, Any]]
    reward: str
    fairness: FairnessAim
    uniform: UtilityDisparity
    num_queries: tuple[int, ...]
    left_out: tuple[dict[str, int], ...]
    reference: UtilityDisparity

    __repr__ = short_repr

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods."""
        return tuple(self.curves)

    @property
    def points(self) -> tuple[TradeoffPoint, ...]:
        """The points of all methods."""
        return tuple(point for curve in self.curves.values() for point in curve)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that every point was fitted with."""
        return tuple(value.seed for value in self.points[0].per_seed)

    @property
    def pareto(self) -> tuple[TradeoffPoint, ...]:
        """The points on the Pareto front of all methods, fairest first."""
        points = self.points
        front = on_pareto_front([point.mean for point in points])
        return tuple(
            sorted((p for p, is_on in zip(points, front, strict=True) if is_on), key=lambda p: p.mean.disparity)
        )

    @property
    def hypervolume(self) -> dict[str, float]:
        """For each method, the hypervolume of its curve; higher is better."""
        return {
            method: hypervolume([point.mean for point in curve], self.reference)
            for method, curve in self.curves.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Curves, Pareto front, hypervolumes and what was measured, as plain values for JSON."""
        pareto = self.pareto
        return {
            "curves": {
                method: [_point_to_dict(point) | {"is_pareto": point in pareto} for point in curve]
                for method, curve in self.curves.items()
            },
            "pareto": [
                {"method": point.method, "strength": point.strength, BOUND: point.max_disparity, **point.mean._asdict()}
                for point in pareto
            ],
            "hypervolume": self.hypervolume,
            "reference": self.reference._asdict(),
            "uniform": self.uniform._asdict(),
            "reward": self.reward,
            "fairness": self.fairness.name,
            "merit": plain(self.fairness.merit),
            "fairness_settings": self.fairness.to_dict(),
            "seeds": list(self.seeds),
            "queries": list(self.num_queries),
            "queries_left_out": list(self.left_out),
            "settings": {
                method: {name: plain(value) for name, value in settings.items()}
                for method, settings in self.settings.items()
            },
        }


def _point_to_dict(point: TradeoffPoint) -> dict[str, Any]:
    deviation = point.standard_deviation
    return {
        "strength": point.strength,
        BOUND: point.max_disparity,
        **point.mean._asdict(),
        "utility_spread": None if deviation is None else deviation.utility,
        "disparity_spread": None if deviation is None else deviation.disparity,
        "per_seed": [
            {"seed": value.seed, "utility": value.utility, "disparity": value.disparity} for value in point.per_seed
        ],
        "notes": list(point.notes),
    }


def swept_setting_in_words(strength: float | None, bound: float | None) -> str:
    """The setting that was swept, such as ``strength 0.1``; empty where there is none."""
    if strength is not None:
        return f"strength {strength:g}"
    return "" if bound is None else f"disparity ≤ {bound:g}"
