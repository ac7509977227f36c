"""Whole experiments on a CUDA device, for `python -m benchmarks.gpu`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rankpolicy.data import make_fair_synthetic, make_web_search, read_letor, split_queries
from rankpolicy.data.arrays import concatenate
from rankpolicy.evaluation import evaluate
from rankpolicy.experiments.tradeoff import sweep_tradeoff
from rankpolicy.rankers import PGRank
from rankpolicy.rankers.fits import fit_together

STRENGTHS = [float(strength) for strength in np.round(np.geomspace(0.1, 100, 32), 3)]
SEEDS = list(range(5))
ALONE = 3  # points that are also fitted one by one


def tradeoff() -> dict[str, Any]:
    """A trade-off curve of networks: all points together, and some of them one by one."""
    trains = [make_fair_synthetic(random_state=2 * seed) for seed in SEEDS]
    tests = [make_fair_synthetic(random_state=2 * seed + 1) for seed in SEEDS]
    methods = {"fair-pg-rank": {"model": "mlp", "device": "cuda"}}
    short = {"fair-pg-rank": methods["fair-pg-rank"] | {"epochs": 2}}
    # Kernels are compiled before both are timed.
    sweep_tradeoff(trains[0], tests[0], short, strengths=[1.0], executor="serial")
    start = time.perf_counter()
    sweep_tradeoff(trains, tests, short, strengths=STRENGTHS, seeds=SEEDS, executor="serial")
    two_epochs = time.perf_counter() - start
    start = time.perf_counter()
    found = sweep_tradeoff(trains, tests, methods, strengths=STRENGTHS, seeds=SEEDS, executor="serial")
    together = time.perf_counter() - start
    start = time.perf_counter()
    chosen = STRENGTHS[:: len(STRENGTHS) // ALONE][:ALONE]
    alone = [
        sweep_tradeoff(trains[0], tests[0], methods, strengths=[strength], executor="serial") for strength in chosen
    ]
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
        "first_time_two_epochs_s": round(two_epochs, 2),
        "ratio": round(one_by_one / together, 1),
        "goal_ratio": 20,
        "largest_gap_in_utility": float(f"{max(gaps):.1e}"),
    }


def quality(
    *, num_queries: int = 400, epochs: int = 15, devices: tuple[str, str] = ("cpu", "cuda")
) -> Iterator[dict[str, Any]]:
    """Test NDCG@10 of whole fits on two devices, five seeds, paired: on MQ2007, fold 1, where RANKPOLICY_DATA has it."""
    folder = Path(os.environ.get("RANKPOLICY_DATA", "")) / "letor_mq2007"
    if (folder / "S1.txt.gz").exists():
        parts = [read_letor(folder / f"S{number}.txt.gz") for number in range(1, 6)]
        train, valid, test = concatenate(parts[:3]), parts[3], parts[4]
        yield {
            "name": "data",
            "set": "MQ2007, fold 1",
            "queries": [train.num_queries, valid.num_queries, test.num_queries],
        }
    else:
        data = make_web_search(num_queries, random_state=0)
        train, valid, test = split_queries(data, (0.6, 0.2, 0.2), random_state=0)
        yield {"name": "data", "set": "make_web_search", "queries": num_queries}
    found = {}
    for device in devices:
        start = time.perf_counter()
        rankers = [PGRank(device=device, epochs=epochs, random_state=seed) for seed in SEEDS]
        fit_together(rankers, [train] * len(SEEDS), [valid] * len(SEEDS))
        found[device] = np.array([evaluate(ranker, test, ["ndcg@10"]).means["ndcg@10"] for ranker in rankers])
        yield {
            "name": f"PGRank on {device}, five seeds",
            "s": round(time.perf_counter() - start, 1),
            "ndcg@10": found[device].round(4).tolist(),
        }
    gaps = found[devices[1]] - found[devices[0]]
    yield {
        "name": f"NDCG@10 on {devices[1]} less that on {devices[0]}, paired",
        "mean": round(float(gaps.mean()), 4),
        "standard_error": round(float(gaps.std(ddof=1) / np.sqrt(len(gaps))), 4),
    }


def rows() -> Iterator[dict[str, Any]]:
    yield tradeoff()
