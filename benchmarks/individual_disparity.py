"""Individual disparity and its gradient for queries of 1000 items: the loop over all pairs of one query against ours on a batch.

Queries of the batch differ, as they do in training: a query repeated would teach the processor its branches.
"""

from __future__ import annotations

import json

import numpy as np
import torch

from benchmarks.timing import speedup, use_two_threads
from rankpolicy.fairness import individual_disparity

NUM_QUERIES, NUM_ITEMS = 32, 1000


def pairwise_loop(exposure: list[float], merit: list[float]) -> tuple[float, list[float]]:
    """The definition as one would first write it."""
    items = [i for i in range(len(merit)) if merit[i] > 0]
    total, num_pairs = 0.0, 0
    gradient = [0.0] * len(merit)
    for i in items:
        for j in items:
            if i != j and merit[i] >= merit[j]:
                num_pairs += 1
                difference = exposure[i] / merit[i] - exposure[j] / merit[j]
                if difference > 0:
                    total += difference
                    gradient[i] += 1 / merit[i]
                    gradient[j] -= 1 / merit[j]
    return total / num_pairs, [value / num_pairs for value in gradient]


def measure() -> dict[str, object]:
    use_two_threads()
    generator = torch.Generator().manual_seed(0)
    exposure = torch.rand(NUM_QUERIES, NUM_ITEMS, generator=generator, dtype=torch.float64)
    merit = torch.randint(0, 5, exposure.shape, generator=generator).double()
    mask = torch.ones_like(exposure, dtype=torch.bool)
    as_lists = exposure[0].tolist(), merit[0].tolist()
    ours, (value, gradient) = individual_disparity(exposure, merit, mask), pairwise_loop(*as_lists)
    np.testing.assert_allclose(ours.values[0], value, rtol=1e-9)
    np.testing.assert_allclose(ours.gradient[0], gradient, atol=1e-9)
    ratio = speedup(lambda: pairwise_loop(*as_lists), lambda: individual_disparity(exposure, merit, mask))
    return {
        "name": "individual-disparity-gradient",
        "ratio": round(NUM_QUERIES * ratio),
        "floor": 100,
        "what": "pairwise loop / ours",
    }


if __name__ == "__main__":
    print(json.dumps(measure()))
