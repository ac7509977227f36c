"""Labels beside the points of curves, where there is free space."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rankpolicy.reports.figures import Curve

LABELS_APART = 28.0  # pixels between labelled points of a curve


def label_points(figure: Any, axes: Any, curves: Mapping[str, Curve]) -> None:
    """Write labels beside the ends of each curve and beside points far enough from other labels, where there is free space."""
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()  # pixel coordinates are known only after drawing
    drawn = [axes.transData.transform(np.column_stack([curve.x, curve.y])) for curve in curves.values()]
    occupied = [Bbox.from_bounds(x - 5, y - 5, 10, 10) for points in drawn for x, y in points]
    occupied += [Bbox.from_bounds(x - 1, y - 1, 2, 2) for points in drawn for x, y in _along(points)]
    for points, curve in zip(drawn, curves.values(), strict=True):
        labelled: list[NDArray[np.float64]] = []
        ends_first = sorted(range(len(points)), key=lambda index: index not in (0, len(points) - 1))
        for index in ends_first:
            is_apart = all(np.hypot(*(points[index] - other)) > LABELS_APART for other in labelled)
            if curve.labels[index] and is_apart:
                labelled.append(points[index])
                _annotate(axes, curve.labels[index], (curve.x[index], curve.y[index]), occupied)


def _annotate(axes: Any, label: str, point: tuple[float, float], occupied: list[Any]) -> None:
    for across, up in ((8, 5), (8, -14), (-8, 5), (-8, -14), (0, 10), (0, -19), (13, -4), (-13, -4)):
        side = "left" if across > 0 else "right" if across < 0 else "center"
        text = axes.annotate(label, point, xytext=(across, up), textcoords="offset points", ha=side, fontsize=9)
        text.set_in_layout(False)
        box = text.get_window_extent()
        if all(axes.bbox.contains(*corner) for corner in box.corners()) and not box.count_overlaps(occupied):
            occupied.append(box)
            return
        text.remove()


def _along(points: NDArray[np.float64], *, step: float = 4.0) -> NDArray[np.float64]:
    """Points (n, 2) every ``step`` pixels along the line through the given points."""
    segments = [points[:1]]
    for a, b in pairwise(points):
        share = np.linspace(0, 1, 1 + int(np.hypot(*(b - a)) / step))[:, None]
        segments.append(a + share * (b - a))
    return np.concatenate(segments)
