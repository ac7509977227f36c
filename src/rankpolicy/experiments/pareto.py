"""Pareto front and hypervolume of points that trade utility against disparity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rankpolicy.declarations.arguments import checked_kinds


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
