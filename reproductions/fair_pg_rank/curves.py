"""Curves of utility against disparity, and what it means that one is nowhere behind another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data import RankingDataset
from rankpolicy.evaluation.policy_value import UniformPolicy
from rankpolicy.fairness import position_bias
from rankpolicy.types import Reward
from reproductions.fair_pg_rank.measures import Measured, measured
from reproductions.paired import PairedInterval, t_interval
from reproductions.statements import Claim
from reproductions.target import Row

Floats = NDArray[np.float64]
ROUNDING = 1e-9  # differences below this are none
UNIFORM = "uniform random policy"


class Draw(NamedTuple):
    """Training and test data of one seed."""

    train: RankingDataset
    test: RankingDataset
    seed: int


class Found(NamedTuple):
    """A fitted method at one setting."""

    method: str
    setting: str
    exposure: NDArray[np.floating]  # of the test items (items,)
    training_objective: float | None = (
        None  # what it reached on training data, where it was trained on utility - λ disparity
    )


Method = Callable[[Draw], Iterable[Found]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A method at one setting, over all seeds.

    Parameters
    ----------
    method
        Its name.
    setting
        What distinguishes it from the other points of the curve.
    per_seed
        What was measured on the test data of each seed.
    training_objectives
        Utility minus the price of disparity on training data, one per seed; empty for methods that do not maximise it.
    """

    method: str
    setting: str
    per_seed: tuple[Measured, ...]
    training_objectives: tuple[float, ...] = ()

    @property
    def mean(self) -> Measured:
        """Means over seeds."""
        return Measured.mean(list(self.per_seed))


Curve = tuple[Point, ...]


def swept(
    methods: Sequence[Method], draws: Sequence[Draw], *, reward: Reward, report: Callable[[str], None]
) -> dict[str, Curve]:
    """The curves of methods by name, each measured on the test data of every seed; and the uniform random policy."""
    found: dict[tuple[str, str], list[tuple[Measured, float | None]]] = {}
    for draw in draws:
        for each in (_uniform, *methods):
            for method, setting, exposure, objective in each(draw):
                value = measured(exposure, draw.test, reward)
                found.setdefault((method, setting), []).append((value, objective))
                report(f"seed {draw.seed} {method} {setting}: {value.utility:.4f} at {value.disparity:.5f}")
    points = [
        Point(
            method=method,
            setting=setting,
            per_seed=tuple(value for value, _ in of_seeds),
            training_objectives=tuple(objective for _, objective in of_seeds if objective is not None),
        )
        for (method, setting), of_seeds in found.items()
    ]
    names = dict.fromkeys(point.method for point in points)
    return {name: tuple(point for point in points if point.method == name) for name in names}


def _uniform(draw: Draw) -> Iterator[Found]:
    bias = position_bias(int(draw.test.sizes.max()))
    yield Found(UNIFORM, "", UniformPolicy().exposure(draw.test, rank_weights=bias))


def rows_of(curves: Mapping[str, Curve], **columns: str) -> list[Row]:
    """One row per point: means over seeds, and the standard deviations of utility and disparity.

    Parameters
    ----------
    curves
        The points of each method.
    columns
        First columns of every row.
    """
    rows = []
    for point in (point for curve in curves.values() for point in curve):
        deviation = np.std(point.per_seed, axis=0, ddof=1) if len(point.per_seed) > 1 else np.zeros(2)
        row: Row = {**columns, "method": point.method, "set": point.setting}
        row |= {name: round(value, 6) for name, value in point.mean._asdict().items()}
        row |= {"utility_deviation": round(deviation[0], 6), "disparity_deviation": round(deviation[1], 6)}
        if point.training_objectives:
            row["training_objective"] = round(float(np.mean(point.training_objectives)), 6)
        rows.append(row)
    return rows


def utility_at(points: Sequence[tuple[float, float]], disparity: float) -> float:
    """The utility of a curve at a disparity: linear between neighbouring points, and that of the last point beyond it.

    A random choice between two policies has the utility between theirs and at most the disparity between theirs.

    Parameters
    ----------
    points
        (disparity, utility) of the points; the lowest disparity must be at most the one that is asked for.
    disparity
        Where to read the curve.

    >>> curve = [(0.0, 0.5), (0.0, 0.7), (0.2, 0.9)]
    >>> round(utility_at(curve, 0.1), 9), utility_at(curve, 3.0)
    (0.8, 0.9)
    """
    rounded = sorted((round(x / ROUNDING), y) for x, y in points)
    best = [(x, max(y for _, y in same)) for x, same in groupby(rounded, key=lambda point: point[0])]
    x, y = zip(*best, strict=True)
    return float(np.interp(round(disparity / ROUNDING), x, y))


def leads(
    ours: Curve, theirs: Curve, *, uniform: Curve, disparity: str = "disparity"
) -> list[tuple[Point, PairedInterval]]:
    """For each point of theirs, the utility of our curve at its disparity minus its utility, paired by seed.

    The uniform random policy, which has no disparity, ends our curve where it does not reach 0 itself.

    Parameters
    ----------
    ours, theirs
        The curves.
    uniform
        The uniform random policy.
    disparity
        Which disparity: "disparity", or "two_sided", where the uniform policy is not fair: points of theirs that are fairer than all of
        ours are then compared with our fairest.
    """
    found = []
    for point in theirs:
        differences = []
        for seed, value in enumerate(point.per_seed):
            curve = [each.per_seed[seed] for each in (*ours, *(uniform if disparity == "disparity" else ()))]
            at = [(getattr(of_seed, disparity), of_seed.utility) for of_seed in curve]
            differences.append(utility_at(at, getattr(value, disparity)) - value.utility)
        found.append((point, t_interval(differences)))
    return found


def nowhere_behind(
    ours: Curve, theirs: Curve, *, uniform: Curve, paper: str, where: str = "", disparity: str = "disparity"
) -> Claim:
    """That our curve is on or above every point of theirs: no mean difference is negative, no interval lies below zero.

    The interval is that of the number of points where we are behind: those whose interval says so, and those whose mean does.

    Parameters
    ----------
    ours, theirs
        The curves.
    uniform
        The uniform random policy.
    paper
        The words of the paper, or what else the claim rests on.
    where
        First words of the claim.
    disparity
        At which disparity curves are compared.
    """
    compared = leads(ours, theirs, uniform=uniform, disparity=disparity)
    behind = [(point, lead) for point, lead in compared if lead.mean < -ROUNDING]
    surely = [point for point, lead in compared if lead.high < -ROUNDING]
    ahead = sum(lead.low > ROUNDING for _, lead in compared)
    means = [lead.mean for _, lead in compared]
    text = (
        f"utility {min(means):+.4f} to {max(means):+.4f} at the same disparity; of {len(compared)} points ahead of {ahead} with an "
        f"interval above zero, behind {len(surely)} with an interval below zero"
    )
    if behind:
        text += "; behind at " + ", ".join(
            f"{point.setting} ({getattr(point.mean, disparity):.4f}): {lead}" for point, lead in behind
        )
    name = {"disparity": "", "two_sided": ", disparity two-sided"}[disparity]
    return Claim(
        claim=f"{where}{ours[0].method} is nowhere behind {theirs[0].method}{name}",
        paper=paper,
        ours=text,
        low=len(surely),
        high=len(behind),
        at_most=0,
    )


def drawn(panels: Mapping[str, Mapping[str, Curve]], names: Sequence[str]) -> Any:
    """A figure with one panel per kind of model: means over seeds, disparity up to where our curve ends, names beside the curves.

    Parameters
    ----------
    panels
        Curves by title.
    names
        The methods to draw; the first is ours.
    """
    from rankpolicy.reports import figures

    with figures.style():
        figure = figures.new_figure(6.6 * len(panels), 5.0)
        for place, (title, curves) in enumerate(panels.items(), 1):
            axes = figure.add_subplot(1, len(panels), place)
            ours = [point.mean for point in curves[names[0]]]
            utilities = [value.utility for value in ours]
            low = min(utilities) - 0.8 * (max(utilities) - min(utilities))
            right, high = 1.12 * max(value.disparity for value in ours), max(utilities) + 0.15 * (max(utilities) - low)
            ends = {}
            for name, colour, marker in zip(names, _COLOURS, figures.MARKERS * 3, strict=False):
                at = sorted((point.mean.disparity, point.mean.utility) for point in curves.get(name, ()))
                visible = [(x, y) for x, y in at if x <= right and low <= y <= high]
                if not visible:
                    continue
                x, y = np.array(at).T
                axes.plot(x, y, color=colour, marker=marker, markersize=4, linewidth=2.6 if name == names[0] else 1.3)
                ends[name] = (visible[-1], colour)
            axes.set_xlim(-0.02 * right, right)
            axes.set_ylim(low, high)
            _name_curves(axes, ends, right=right, gap=0.055 * (high - low))
            axes.set_title(title, fontsize=11)
            axes.set_xlabel("group disparity D   (← better)")
            if place == 1:
                axes.set_ylabel("expected NDCG   (better →)")
        return figure


def _name_curves(axes: Any, ends: Mapping[str, tuple[tuple[float, float], str]], *, right: float, gap: float) -> None:
    """Write the name of each curve to the right of the axes, on the height of its last point, at least a gap apart."""
    heights: list[float] = []
    for name, ((x, y), colour) in sorted(ends.items(), key=lambda item: -item[1][0][1]):
        height = y if not heights else min(y, heights[-1] - gap)
        heights.append(height)
        axes.annotate(
            name,
            (x, y),
            xytext=(1.03 * right, height),
            fontsize=9,
            color=colour,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.6},
        )


_COLOURS = ("#c1272d", "#0072b2", "#56b4e9", "#e69f00", "#8c6d1f", "#009e73", "#777777", "#333333")
