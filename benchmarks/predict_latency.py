"""Ranking one list with the default PG-Rank: CPU time of LightGBM with 100 trees over ours."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import lightgbm
import numpy as np
import torch

import rankpolicy as rp

NUM_ITEMS, NUM_TREES = 25, 100


def cpu_seconds(program: Callable[[], object], *, repeats: int = 15, calls: int = 50) -> float:
    """CPU time of one call, all threads included; the least over repeats, as others use the machine too."""
    program()
    least = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(calls):
            program()
        least = min(least, (time.process_time() - start) / calls)
    return least


def measure(num_features: int, floor: float) -> dict[str, object]:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((4000, num_features)).astype(np.float32)
    labels, sizes = rng.integers(0, 3, 4000), np.full(160, NUM_ITEMS)
    ours = rp.PGRank(epochs=1).fit(features, labels, group=sizes, progress=False)
    data = lightgbm.Dataset(features, labels, group=sizes)
    parameters = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1}
    theirs = lightgbm.train(parameters, data, NUM_TREES)
    query = features[:NUM_ITEMS].copy()
    our_time = cpu_seconds(lambda: ours.predict(query))
    their_time = cpu_seconds(lambda: theirs.predict(query, num_threads=1))
    return {
        "name": f"predict-latency-{num_features}",
        "ratio": round(their_time / our_time, 2),
        "floor": floor,
        "what": f"LightGBM with {NUM_TREES} trees / ours ({1000 * our_time:.3f} ms of CPU), {NUM_ITEMS} items x {num_features} features",
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(measure(136, 0.67)))
    print(json.dumps(measure(700, 0.3)))
