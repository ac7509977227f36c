"""Report on a trade-off: utility and disparity of each method, point by point, and the exposure of items at some points."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import plain
from rankpolicy.experiments.tradeoff_curves import Tradeoff, TradeoffPoint
from rankpolicy.fairness import FairnessAim
from rankpolicy.reports import figures
from rankpolicy.reports.html import report
from rankpolicy.reports.run_record import RunRecord


def tradeoff_figure(tradeoff: Tradeoff) -> Any:
    """A matplotlib figure of utility against disparity, one line per method, for ``figures.svg`` and ``figures.file``."""
    curves = {}
    for method, points in tradeoff.curves.items():
        spreads = [point.standard_deviation for point in points]
        known_spreads = [spread for spread in spreads if spread is not None]
        curves[method] = figures.Curve(
            x=[point.mean.disparity for point in points],
            y=[point.mean.utility for point in points],
            spread_of_x=[spread.disparity for spread in known_spreads] or None,
            spread_of_y=[spread.utility for spread in known_spreads] or None,
            labels=[_short_label(point) for point in points],
        )
    return figures.tradeoff_curves(
        curves,
        [(point.mean.disparity, point.mean.utility) for point in tradeoff.pareto],
        x_name=f"{tradeoff.fairness.name} disparity of exposure",
        y_name=f"expected {tradeoff.reward}",
        label_name="strength" if any(point.strength is not None for point in tradeoff.points) else "bound",
    )


def tradeoff_page(tradeoff: Tradeoff, test: RankingDataset, run: RunRecord, *, title: str, lead: str) -> str:
    """The HTML page on a trade-off between utility and fairness."""
    left_out: Counter[str] = sum(map(Counter, tradeoff.left_out), Counter())
    curves = figures.svg(tradeoff_figure(tradeoff), f"{tradeoff.reward} against {tradeoff.fairness.name} disparity")
    return report(
        "tradeoff",
        title=title,
        lead=lead,
        run=run,
        tradeoff=tradeoff,
        curves=curves,
        exposures=_exposures(tradeoff, test),
        left_out=left_out,
        position_bias=_position_bias_text(tradeoff.fairness),
        merit=plain(tradeoff.fairness.merit),
        mean_text=mean_text,
    )


def points_to_show(curve: tuple[TradeoffPoint, ...]) -> dict[str, TradeoffPoint]:
    """The least fair point of a curve, the middle one and the fairest, by their titles; fewer where the curve has fewer points."""
    ordered = sorted(curve, key=lambda point: -point.mean.disparity)
    if len(ordered) == 1:
        return {ordered[0].label or ordered[0].method: ordered[0]}
    chosen = {"least fair": ordered[0], "between": ordered[len(ordered) // 2], "fairest": ordered[-1]}
    if len(ordered) == 2:
        del chosen["between"]
    return {f"{name}: {point.label}": point for name, point in chosen.items()}


def mean_text(mean: float, spread: float | None, digits: int) -> str:
    """A mean with its standard deviation, if there is one."""
    return f"{mean:.{digits}f}" if spread is None else f"{mean:.{digits}f} ± {spread:.{digits}f}"


def _exposures(tradeoff: Tradeoff, test: RankingDataset) -> str:
    """Exposure by merit at points of the first method."""
    method, curve = next(iter(tradeoff.curves.items()))
    merit = tradeoff.fairness.merits(test.labels_by_query.astype(np.float64)[None])[0]
    groups = None if test.groups_by_query is None else test.in_row_order(test.groups_by_query)
    panels = {title: point.exposure for title, point in points_to_show(curve).items()}
    drawn = figures.exposure_by_merit(panels, test.in_row_order(merit), groups)
    return figures.svg(drawn, f"exposure by merit of {method}")


def _position_bias_text(aim: FairnessAim) -> str:
    if isinstance(aim.rank_weights, str):
        return {"log2": "1 / log2(1 + rank)", "inverse": "1 / rank", "geometric": "0.8^(rank - 1)"}[aim.rank_weights]
    return "as measured: " + ", ".join(f"{weight:.3g}" for weight in aim.rank_weights)


def _short_label(point: TradeoffPoint) -> str:
    if point.strength is not None:
        return f"{point.strength:g}"
    return "" if point.max_disparity is None else f"≤{point.max_disparity:g}"
