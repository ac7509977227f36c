"""Curves of utility against disparity over many settings of one method, and what it means that one curve is nowhere worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankpolicy.experiments.pareto import UtilityDisparity, hypervolume
from rankpolicy.experiments.tradeoff_curves import Tradeoff, TradeoffPoint
from reproductions.target import Claim, Row

NAME_OF_PARITY = " parity "  # "fair-pg-rank:linear parity 0.5" is a point of the curve "fair-pg-rank:linear"


MethodAndSettings = tuple[str, dict[str, Any]]


def with_parity(name: str, settings: dict[str, Any], shares: Sequence[float]) -> dict[str, MethodAndSettings]:
    """Fair-PG-Rank swept over its strength, and at some shares of parity without a penalty, by name.

    >>> for name, method in with_parity("ours", {"epochs": 9}, [0.5]).items():
    ...     print(name, method)
    ours ('fair-pg-rank', {'epochs': 9})
    ours parity 0.5 ('fair-pg-rank', {'epochs': 9, 'strength': 0.0, 'fairness__parity': 0.5})
    """
    at_parity = {share: {**settings, "strength": 0.0, "fairness__parity": share} for share in shares}
    return {
        name: ("fair-pg-rank", settings),
        **{f"{name}{NAME_OF_PARITY}{share:g}": ("fair-pg-rank", chosen) for share, chosen in at_parity.items()},
    }


def strengths_of(
    methods: Mapping[str, MethodAndSettings],
    by_method: Mapping[str, Sequence[float]],
    others: Sequence[float],
    *,
    is_smoke: bool,
) -> dict[str, Sequence[float]]:
    """The strengths of each method by its name here; only the first and the last in a smoke run.

    >>> strengths_of({"linear": ("deltr", {}), "lp": ("fair-lp", {})}, {"deltr": [0, 1, 9]}, [0, 5], is_smoke=True)
    {'linear': [0, 9], 'lp': [0, 5]}
    """
    chosen = {name: by_method.get(method, others) for name, (method, _) in methods.items()}
    return {name: [own[0], own[-1]] for name, own in chosen.items()} if is_smoke else chosen


def joined(tradeoff: Tradeoff) -> Tradeoff:
    """The points with parity as parts of the curve of their method, in order of disparity."""
    curves: dict[str, list[TradeoffPoint]] = {}
    for name, points in tradeoff.curves.items():
        curves.setdefault(name.partition(NAME_OF_PARITY)[0], []).extend(points)
    ordered = {name: tuple(sorted(points, key=lambda p: p.mean.disparity)) for name, points in curves.items()}
    return replace(tradeoff, curves=ordered)


def to_draw(tradeoff: Tradeoff, kind: str) -> Tradeoff:
    """The curves of one kind of model, points with parity a curve of their own; what lies twice as far out as ours is left out."""
    curves: dict[str, list[TradeoffPoint]] = {}
    for name, points in tradeoff.curves.items():
        method, _, share = name.partition(NAME_OF_PARITY)
        if f":{kind}" in method:
            curves.setdefault(f"{method}, parity" if share else method, []).extend(points)
    farthest = 2 * max(point.mean.disparity for point in curves[f"fair-pg-rank:{kind}"])
    return replace(
        tradeoff,
        curves={name: tuple(p for p in points if p.mean.disparity <= farthest) for name, points in curves.items()},
    )


def rows_of(tradeoff: Tradeoff) -> list[Row]:
    """A row a point."""
    rows = []
    for name, points in tradeoff.curves.items():
        for point in points:
            deviation, share = point.standard_deviation, point.method.partition(NAME_OF_PARITY)[2]
            rows.append(
                {
                    "method": name,
                    "set": f"parity {share}" if share else point.label,
                    "utility": point.mean.utility,
                    "utility_deviation": None if deviation is None else deviation.utility,
                    "disparity": point.mean.disparity,
                    "disparity_deviation": None if deviation is None else deviation.disparity,
                }
            )
    return rows


def not_covered(ours: Sequence[TradeoffPoint], theirs: Sequence[TradeoffPoint]) -> list[TradeoffPoint]:
    """Points of theirs that no point of ours equals or beats in both aims."""
    return [
        point
        for point in theirs
        if not any(
            our.mean.utility >= point.mean.utility and our.mean.disparity <= point.mean.disparity for our in ours
        )
    ]


def dominance(tradeoff: Tradeoff, ours: str, theirs: str, paper: str) -> Claim:
    """That a point of our curve equals or beats every point of theirs in both aims, and our hypervolume is larger."""
    reference = UtilityDisparity(
        utility=min(point.mean.utility for name in (ours, theirs) for point in tradeoff.curves[name]),
        disparity=max(point.mean.disparity for name in (ours, theirs) for point in tradeoff.curves[name]),
    )
    volumes = [hypervolume([point.mean for point in tradeoff.curves[name]], reference) for name in (ours, theirs)]
    ahead = not_covered(tradeoff.curves[ours], tradeoff.curves[theirs])
    where = ", ".join(f"{point.mean.utility:.4f} at {point.mean.disparity:.4f}" for point in ahead)
    return Claim(
        claim=f"{ours} is nowhere behind {theirs}",
        paper=paper,
        ours=f"hypervolume {volumes[0]:.6f} against {volumes[1]:.6f}; "
        + (f"behind at {where}" if ahead else "every point of theirs is equalled or beaten in both aims"),
        holds=not ahead and volumes[0] > volumes[1],
    )
