"""A DCM user and dcmKL-UCB, 16 items and 4 positions, step by step: plain NumPy against ours on one core; and ours in steps a second."""

from __future__ import annotations

import json
import time

import numpy as np

from benchmarks.timing import speedup
from rankpolicy.simulation import dcm_lower_bound_problem, simulate

NUM_ITEMS, CUTOFF, NUM_STEPS, PLAIN_STEPS = 16, 4, 50_000, 500
LEAST_STEPS_A_SECOND = 1e5


def with_numpy(attraction: np.ndarray, termination: np.ndarray, num_steps: int) -> float:
    """The algorithm of the paper, an array operation for each of its lines; the index by bisection."""
    generator = np.random.default_rng(0)
    observations = np.ones(NUM_ITEMS)
    means = (generator.random(NUM_ITEMS) < attraction).astype(float)
    best = 1 - np.prod(1 - termination * np.sort(attraction)[::-1][:CUTOFF])
    regret = 0.0
    for t in range(1, num_steps + 1):
        threshold = max(0.0, np.log(t) + 3 * np.log(np.log(t))) if t > 1 else 0.0
        low, high = means.copy(), np.ones(NUM_ITEMS)
        for _ in range(30):  # to 1e-9
            q = (low + high) / 2
            p, r = np.clip(means, 1e-15, 1 - 1e-15), np.clip(q, 1e-15, 1 - 1e-15)
            inside = observations * (p * np.log(p / r) + (1 - p) * np.log((1 - p) / (1 - r))) <= threshold
            low, high = np.where(inside, q, low), np.where(inside, high, q)
        ranking = np.lexsort((generator.random(NUM_ITEMS), -low))[:CUTOFF]
        attracted, satisfied = generator.random(CUTOFF) < attraction[ranking], generator.random(CUTOFF) < termination
        stops = np.flatnonzero(attracted & satisfied)
        clicks = attracted & (np.arange(CUTOFF) <= (stops[0] if len(stops) else CUTOFF))
        last = np.flatnonzero(clicks)[-1] if clicks.any() else CUTOFF - 1
        seen = ranking[: last + 1]
        observations[seen] += 1
        means[seen] += (clicks[: last + 1] - means[seen]) / observations[seen]
        regret += best - (1 - np.prod(1 - termination * attraction[ranking]))
    return regret


def measure() -> list[dict[str, object]]:
    problem = dcm_lower_bound_problem(NUM_ITEMS, CUTOFF, gap=0.15, termination=0.5)
    attraction, termination = problem.phases[0].user.attraction, problem.phases[0].user.parameters["stop"]

    def ours() -> None:
        simulate(["dcm-kl-ucb"], problem, num_steps=NUM_STEPS, num_runs=1, executor="serial")

    ratio = speedup(lambda: with_numpy(attraction, termination, PLAIN_STEPS), ours, repeats=5)
    rates = []
    for _ in range(5):
        start = time.process_time()  # of this process: others on the machine do not count
        ours()
        rates.append(NUM_STEPS / (time.process_time() - start))
    return [
        {
            "name": "bandit-loop",
            "ratio": round(ratio * NUM_STEPS / PLAIN_STEPS),
            "floor": 100,
            "what": "plain NumPy / ours, dcmKL-UCB, 16 items, 4 positions, one core",
        },
        {
            "name": "bandit-loop-steps",
            "ratio": round(float(np.median(rates)) / LEAST_STEPS_A_SECOND, 2),
            "floor": 1,
            "what": "ours in 100,000 steps a second of one core",
        },
    ]


if __name__ == "__main__":
    for result in measure():
        print(json.dumps(result))
