"""The KL-UCB index of a million pairs: a root finder of scipy on each pair against ours; the error against bisection is checked too."""

from __future__ import annotations

import json
import math

import numpy as np
from scipy.optimize import brentq

from benchmarks.timing import speedup, use_two_threads
from rankpolicy.bandits import kl_ucb

NUM_PAIRS, NUM_SAMPLED = 1_000_000, 2_000  # scipy does a sample: a million would take it a minute
LARGEST_ERROR = 1e-9


def with_brentq(means: list[float], divergences: list[float]) -> list[float]:
    """One root at a time, as one would first write it."""
    indices = []
    for p, d in zip(means, divergences, strict=True):
        if p >= 1:
            indices.append(1.0)
        elif p <= 0:
            indices.append(1 - math.exp(-d))
        else:

            def excess(q: float, p: float = p, d: float = d) -> float:
                return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)) - d

            indices.append(brentq(excess, p, 1 - 1e-16, xtol=1e-12) if excess(1 - 1e-16) > 0 else 1.0)
    return indices


def with_bisection(means: np.ndarray, divergences: np.ndarray) -> np.ndarray:
    low, high = means.copy(), np.ones_like(means)
    for _ in range(60):
        q = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            below = np.where(means > 0, means * np.log(means / q), 0.0)
            above = np.where(means < 1, (1 - means) * np.log((1 - means) / (1 - q)), 0.0)
        inside = below + above <= divergences
        low, high = np.where(inside, q, low), np.where(inside, high, q)
    return low


def measure() -> dict[str, object]:
    use_two_threads()
    generator = np.random.default_rng(0)
    observations = np.exp(generator.uniform(0, math.log(1e5), NUM_PAIRS)).round()
    means = generator.binomial(observations.astype(int), generator.random(NUM_PAIRS) ** 2) / observations
    divergences = (math.log(1e5) + 3 * math.log(math.log(1e5))) / observations
    error = np.abs(kl_ucb(means, divergences) - with_bisection(means, divergences)).max()
    assert error <= LARGEST_ERROR, f"error {error:.1e} is above {LARGEST_ERROR:.0e}"
    sample = means[:NUM_SAMPLED].tolist(), divergences[:NUM_SAMPLED].tolist()
    ratio = speedup(lambda: with_brentq(*sample), lambda: kl_ucb(means, divergences), repeats=5)
    return {
        "name": "kl-ucb-index",
        "ratio": round(ratio * NUM_PAIRS / NUM_SAMPLED),
        "floor": 100,
        "what": "scipy.optimize.brentq / ours, a million pairs",
        "largest_error": float(f"{error:.2g}"),
    }


if __name__ == "__main__":
    print(json.dumps(measure()))
