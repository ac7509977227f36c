"""Report on a trade-off: utility and disparity of each method, point by point, and the exposure of items at some points."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import torch

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import plain
from rankpolicy.experiments.pareto import UtilityDisparity
from rankpolicy.experiments.tradeoff_curves import Tradeoff, TradeoffPoint
from rankpolicy.fairness import FairnessAim
from rankpolicy.reports import figures
from rankpolicy.reports.how_made import how_made
from rankpolicy.reports.html import Cell, Section, figure, html_page, paragraph, table
from rankpolicy.reports.run_record import RunRecord

COLUMNS = (
    "method",
    "strength",
    "max_disparity",
    "utility",
    "disparity",
    "utility_spread",
    "disparity_spread",
    "is_pareto",
)


def tradeoff_figure(tradeoff: Tradeoff) -> Any:
    """A matplotlib figure of utility against disparity, one line per method, for ``figures.svg`` and ``figures.file``.

    Parameters
    ----------
    tradeoff
        Points of each method.
    """
    curves = {}
    for method, points in tradeoff.curves.items():
        spreads = [point.standard_deviation for point in points]
        known = [spread for spread in spreads if spread is not None]
        curves[method] = figures.Curve(
            x=[point.mean.disparity for point in points],
            y=[point.mean.utility for point in points],
            spread_of_x=[spread.disparity for spread in known] or None,
            spread_of_y=[spread.utility for spread in known] or None,
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
    """The HTML page on a trade-off between utility and fairness.

    Parameters
    ----------
    tradeoff
        Points of each method.
    test
        Test data of the first seed.
    run
        Command, seed, data and versions, for the last section.
    title
        Title of the page.
    lead
        First paragraph, below the title.
    """
    caption = (
        "Each point is a method at one strength, measured on held-out queries; up and left is better. Rings and the dotted line mark the "
        "Pareto front: points that no other point dominates."
        + (f" Thin bars: ± one standard deviation over {len(tradeoff.seeds)} seeds." if len(tradeoff.seeds) > 1 else "")
    )
    drawn = figures.svg(tradeoff_figure(tradeoff), f"{tradeoff.reward} against {tradeoff.fairness.name} disparity")
    return html_page(
        title,
        lead,
        [
            Section(title="Utility against disparity", parts=(figure(drawn, caption), *_hypervolumes(tradeoff))),
            Section(title="Exposure and merit", parts=_exposures(tradeoff, test)),
            Section(title="Points", parts=_points(tradeoff)),
            Section(title="What was measured", parts=_measured(tradeoff)),
            how_made(run),
        ],
    )


def tradeoff_csv(tradeoff: Tradeoff) -> str:
    """A CSV text with one row per point.

    Parameters
    ----------
    tradeoff
        Points of each method.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for method, points in tradeoff.to_dict()["curves"].items():
        writer.writerows({"method": method, **point} for point in points)
    return text.getvalue()


def points_to_show(curve: tuple[TradeoffPoint, ...]) -> dict[str, TradeoffPoint]:
    """The least fair point of a curve, the middle one and the fairest, by their titles; fewer where the curve has fewer points.

    Parameters
    ----------
    curve
        Points of one method.
    """
    ordered = sorted(curve, key=lambda point: -point.mean.disparity)
    if len(ordered) == 1:
        return {ordered[0].label or ordered[0].method: ordered[0]}
    chosen = {"least fair": ordered[0], "between": ordered[len(ordered) // 2], "fairest": ordered[-1]}
    if len(ordered) == 2:
        del chosen["between"]
    return {f"{name}: {point.label}": point for name, point in chosen.items()}


def mean_text(mean: float, spread: float | None, digits: int) -> str:
    """A mean with its standard deviation, if there is one.

    Parameters
    ----------
    mean
        The mean.
    spread
        The standard deviation; None where there is none.
    digits
        Digits after the point.
    """
    return f"{mean:.{digits}f}" if spread is None else f"{mean:.{digits}f} ± {spread:.{digits}f}"


def _hypervolumes(tradeoff: Tradeoff) -> tuple[str, ...]:
    volumes = tradeoff.hypervolume
    best = max(volumes, key=lambda method: volumes[method])
    on_front = {method: sum(point.method == method for point in tradeoff.pareto) for method in volumes}
    rows: list[list[str | Cell]] = [
        [
            method,
            Cell(str(len(tradeoff.curves[method]))),
            Cell(str(on_front[method])),
            Cell(f"{volume:.6f}", is_best=method == best),
        ]
        for method, volume in volumes.items()
    ]
    caption = (
        "Hypervolume: the area dominated by a method's points, bounded by the reference point; more is better. Reference point: "
        f"{_aims_text(tradeoff.reference)}."
    )
    return (table(["method", "points", "on the Pareto front", "hypervolume"], rows, caption=caption),)


def _exposures(tradeoff: Tradeoff, test: RankingDataset) -> tuple[str, ...]:
    method, curve = next(iter(tradeoff.curves.items()))
    merit = tradeoff.fairness.merits(torch.from_numpy(test.labels_by_query.astype(np.float64))[None])[0].numpy()
    groups = None if test.groups_by_query is None else test.in_row_order(test.groups_by_query)
    shown = points_to_show(curve)
    exposures = {title: point.exposure for title, point in shown.items()}
    drawn = figures.exposure_by_merit(exposures, test.in_row_order(merit), groups)
    caption = (
        f"{method} at points of its curve. Each dot is an item of the test data (seed {tradeoff.seeds[0]}), large marks are means of "
        "groups. On the line an item has as much exposure for its merit as the average item; a group above it is shown more than it "
        "merits. Disparity compares items or groups within a query; this figure pools all queries."
    )
    return (figure(figures.svg(drawn, f"exposure by merit of {method}"), caption),)


def _points(tradeoff: Tradeoff) -> tuple[str, ...]:
    on_front = tradeoff.pareto
    has_notes = any(point.notes for point in tradeoff.points)
    rows: list[list[str | Cell]] = []
    for point in tradeoff.points:
        mean, deviation = point.mean, point.standard_deviation
        rows.append(
            [
                point.method,
                point.label,
                Cell(mean_text(mean.utility, deviation and deviation.utility, 4), is_best=point in on_front),
                Cell(mean_text(mean.disparity, deviation and deviation.disparity, 5), is_best=point in on_front),
                "Pareto" if point in on_front else "",
                *(["; ".join(point.notes)] if has_notes else []),
            ]
        )
    seeds = f"Mean ± standard deviation over {len(tradeoff.seeds)} seeds. " if len(tradeoff.seeds) > 1 else ""
    header = ["method", "set", tradeoff.reward, "disparity", "", *(["warnings"] if has_notes else [])]
    return (table(header, rows, caption=f"{seeds}Bold: on the Pareto front."),)


def _measured(tradeoff: Tradeoff) -> tuple[str, ...]:
    left_out: dict[str, int] = {}
    for of_seed in tradeoff.left_out:
        for reason, count in of_seed.items():
            left_out[reason] = left_out.get(reason, 0) + count
    reasons = "; ".join(f"{reason}: {count}" for reason, count in left_out.items())
    rows: list[list[str | Cell]] = [
        [method, ", ".join(f"{name}={value}" for name, value in settings.items()) or "defaults"]
        for method, settings in tradeoff.settings.items()
    ]
    aim = tradeoff.fairness
    compared = "expected clicks" if aim.impact else "exposure"
    return (
        paragraph(
            f"Utility is the expected {tradeoff.reward} of a ranking drawn from the policy, mean over test queries. Disparity is the "
            f"{aim.name} disparity of {compared} for merit (Singh & Joachims 2019), mean over the test queries that have one; "
            f"position bias {_position_bias_text(aim)}, merit {plain(aim.merit)} of the label. Both are "
            "computed from exact exposures, not sampled. A method that sorts by scores is measured by that one ranking of each query."
        ),
        paragraph(
            f"Test queries: {sum(tradeoff.num_queries)} over {len(tradeoff.seeds)} seed(s). Left out of the disparity: "
            f"{reasons or 'none'}. For reference, the uniform random policy has {_aims_text(tradeoff.uniform)}."
        ),
        table(["method", "settings"], rows, caption="Settings that are not listed have their defaults."),
    )


def _position_bias_text(aim: FairnessAim) -> str:
    if isinstance(aim.rank_weights, str):
        return {"log2": "1 / log2(1 + rank)", "inverse": "1 / rank", "geometric": "0.8^(rank - 1)"}[aim.rank_weights]
    return "as measured: " + ", ".join(f"{weight:.3g}" for weight in aim.rank_weights)


def _aims_text(aims: UtilityDisparity) -> str:
    return f"utility {aims.utility:.4f}, disparity {aims.disparity:.5f}"


def _short_label(point: TradeoffPoint) -> str:
    if point.strength is not None:
        return f"{point.strength:g}"
    return "" if point.max_disparity is None else f"≤{point.max_disparity:g}"
