"""Whole experiments on a CUDA device, for `python -m benchmarks.gpu`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rankpolicy.data import make_fair_synthetic, make_web_search, read_letor, split_queries
from rankpolicy.data.arrays import concatenate
from rankpolicy.evaluation import evaluate
from rankpolicy.experiments.tradeoff import sweep_tradeoff
from rankpolicy.metrics import parse_metric, term_table
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


def evaluation() -> dict[str, Any]:
    """NDCG@10 and AP of 1,000,000 queries of 100 items whose scores lie on the device: by the kernel, and by torch in blocks."""
    num_queries, num_items, block = 1_000_000, 100, 50_000
    generator = torch.Generator("cuda").manual_seed(0)
    scores = torch.rand(num_queries, num_items, generator=generator, device="cuda")
    labels = torch.randint(0, 5, scores.shape, generator=generator, device="cuda", dtype=torch.int8)
    mask = torch.ones(block, num_items, dtype=torch.bool, device="cuda")
    metrics = [parse_metric("ap"), parse_metric("ndcg@10")]  # the order of terms in the table
    table = term_table(parse_metric("ndcg@10 + ap"))
    assert table is not None
    offsets = torch.arange(num_queries + 1, device="cuda") * num_items

    def in_torch() -> list[float]:
        sums = torch.zeros(len(metrics), dtype=torch.float64, device="cuda")
        for first in range(0, num_queries, block):
            rankings = scores[first : first + block].argsort(descending=True, stable=True)
            given = labels[first : first + block].float()
            sums += torch.stack([metric(rankings, given, mask).double().sum() for metric in metrics])
        return (sums / num_queries).tolist()

    def by_kernel() -> list[float]:
        from rankpolicy.kernels.triton.metrics import metric_values

        found = metric_values(
            scores.view(-1),
            labels.view(-1),
            offsets,
            offsets[:-1] // num_items,
            longest=num_items,
            kinds=tuple(table.kinds.tolist()),
            cutoffs=tuple(table.cutoffs.tolist()),
            conventions=metrics[0].conventions,
        )
        return found.values.double().mean(0).tolist()

    seconds, values = {}, {}
    for name, measured in (("kernel", by_kernel), ("torch", in_torch)):
        measured()
        torch.cuda.synchronize()
        start = time.perf_counter()
        values[name] = measured()
        seconds[name] = time.perf_counter() - start
    num_bytes = scores.numel() * 4 + labels.numel()
    return {
        "name": "evaluation of 1,000,000 x 100, ap and ndcg@10",
        "s": round(seconds["kernel"], 5),
        "torch_s": round(seconds["torch"], 4),
        "ratio": round(seconds["torch"] / seconds["kernel"], 1),
        "memory_limit_s": round(num_bytes / 4.8e12, 5),
        "values": [round(value, 6) for value in values["kernel"]],
        "torch_values": [round(value, 6) for value in values["torch"]],
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
    yield evaluation()
