"""Points of two aims, a high utility and a low disparity: which of them nothing beats, and how much they cover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Aims(NamedTuple):
    """A point of the plane of the two aims."""

    utility: float  # higher is better
    disparity: float  # lower is better


def on_pareto_front(points: Sequence[Aims]) -> list[bool]:
    """Which points no other point beats: is at least as good in both aims and better in one.

    >>> on_pareto_front([Aims(0.9, 0.3), Aims(0.8, 0.1), Aims(0.8, 0.2), Aims(0.7, 0.1)])
    [True, True, False, False]
    """
    return [not any(_beats(other, point) for other in points) for point in points]


def hypervolume(points: Sequence[Aims], reference: Aims) -> float:
    """The area of all that a point beats, as far as the reference point, which no point here should be worse than.

    Points that are worse than the reference in an aim cover nothing.

    >>> hypervolume([Aims(1.0, 0.5), Aims(0.75, 0.25)], Aims(0.5, 1.0))  # 0.25 * 0.75 + 0.25 * 0.5
    0.3125
    """
    covering = sorted(
        {point for point in points if point.utility > reference.utility and point.disparity < reference.disparity},
        key=lambda point: (point.disparity, -point.utility),
    )
    area, covered_to = 0.0, reference.utility
    for point in covering:
        if point.utility > covered_to:
            area += (point.utility - covered_to) * (reference.disparity - point.disparity)
            covered_to = point.utility
    return area


def _beats(a: Aims, b: Aims) -> bool:
    return a.utility >= b.utility and a.disparity <= b.disparity and a != b
