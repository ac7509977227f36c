"""Whole experiments on a CUDA device, for `python -m benchmarks.gpu`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from rankpolicy.data import make_fair_synthetic
from rankpolicy.experiments.tradeoff import sweep_tradeoff

STRENGTHS = [float(strength) for strength in np.round(np.geomspace(0.1, 100, 32), 3)]
SEEDS = list(range(5))
ALONE = 3  # points that are also fitted one by one


def tradeoff() -> dict[str, Any]:
    """A trade-off curve of networks: all points together, and some of them one by one."""
    trains = [make_fair_synthetic(random_state=2 * seed) for seed in SEEDS]
    tests = [make_fair_synthetic(random_state=2 * seed + 1) for seed in SEEDS]
    methods = {"fair-pg-rank": {"model": "mlp", "device": "cuda"}}
    sweep_tradeoff(
        trains[0], tests[0], {"fair-pg-rank": {"model": "mlp", "device": "cuda", "epochs": 2}}, strengths=[1.0], jobs=1
    )
    start = time.perf_counter()
    found = sweep_tradeoff(trains, tests, methods, strengths=STRENGTHS, seeds=SEEDS, jobs=1)
    together = time.perf_counter() - start
    start = time.perf_counter()
    chosen = STRENGTHS[:: len(STRENGTHS) // ALONE][:ALONE]
    alone = [sweep_tradeoff(trains[0], tests[0], methods, strengths=[strength], jobs=1) for strength in chosen]
    one_by_one = (time.perf_counter() - start) / ALONE * len(STRENGTHS) * len(SEEDS)
    points = {point.strength: point for point in found.points}
    gaps = [
        abs(points[strength].per_seed[0].utility - single.points[0].per_seed[0].utility)
        for strength, single in zip(chosen, alone, strict=True)
    ]
    return {
        "name": f"trade-off of {len(STRENGTHS)} strengths x {len(SEEDS)} seeds, MLP",
        "together_s": round(together, 2),
        "one_by_one_s": round(one_by_one, 1),
        "measured": f"one by one: {ALONE} points, scaled",
        "ratio": round(one_by_one / together, 1),
        "goal_ratio": 20,
        "largest_gap_in_utility": float(f"{max(gaps):.1e}"),
    }


def rows() -> Iterator[dict[str, Any]]:
    yield tradeoff()
