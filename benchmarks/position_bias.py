"""Known propensities from simulated sessions, by every method: 0.03 over the largest relative error, which must be 1 or more.

    python -m benchmarks.position_bias                     a million sessions, eta 0.5, 1 and 2
    python -m benchmarks.position_bias coverage [method]   how often 95 % intervals hold the truth, over 400 logs

A hundred queries of as many items as positions; relevance = sigmoid(0.3 + 0.6 x_1 - 0.4 x_2). Randomised methods see random lists, swaps a
log of swaps, the others eight fixed rankers. Propensities are 1 / rank^eta. With ten positions and eta = 2 the last rank has 1 % of the
first's clicks, a few thousand: chance alone is then about 1.5 %, and more for methods that use only some of them.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from rankpolicy.clicks import POSITION_BIAS_METHODS, BiasedLog, PositionBias, estimate_position_bias, make_biased_log

NUM_SESSIONS, NUM_QUERIES = 1_000_000, 100
ETAS = (0.5, 1.0, 2.0)
REPLICATIONS, SESSIONS_OF_COVERAGE, RESAMPLES_OF_COVERAGE = 400, 4000, 200


def simulated(
    method: str, *, eta: float, num_sessions: int, num_queries: int, num_positions: int, seed: int
) -> tuple[BiasedLog, np.ndarray]:
    """A log of the traffic that a method needs, and the features of its pairs."""
    features = np.random.default_rng(0).normal(size=(num_queries * num_positions, 2))
    relevance = 1 / (1 + np.exp(-(0.3 + features @ np.array([0.6, -0.4]))))
    traffic = "random" if method.startswith("randomised") else "swaps" if method == "swaps" else "rankers"
    made = make_biased_log(
        num_sessions,
        propensities=1 / np.arange(1, num_positions + 1) ** eta,
        relevance=relevance.reshape(num_queries, num_positions),
        traffic=traffic,
        random_state=seed,
    )
    return made, features


def estimated(method: str, made: BiasedLog, features: np.ndarray, num_resamples: int, seed: int) -> PositionBias:
    name = method.removesuffix("+features")
    # Equal sessions counted once give the same intervals sooner; swaps belong to single sessions.
    log = made.log if name == "swaps" else made.log.collapsed()
    return estimate_position_bias(
        log,
        method=name,
        segments=log.queries % 3 if name == "randomised-by-segment" else None,
        query_features=(log.queries % 5)[:, None] / 5 if name == "randomised-regression" else None,
        swaps=made.swaps if name == "swaps" else None,
        pair_features=features if method.endswith("+features") else None,
        num_resamples=num_resamples,
        random_state=seed,
    )


def recovery(method: str, eta: float, num_positions: int) -> dict[str, object]:
    made, features = simulated(
        method, eta=eta, num_sessions=NUM_SESSIONS, num_queries=NUM_QUERIES, num_positions=num_positions, seed=1
    )
    found = estimated(method, made, features, 0, 0)
    errors = abs(found.propensities / made.propensities - 1)
    return {
        "name": f"{method}-eta-{eta:g}-positions-{num_positions}",
        "ratio": round(0.03 / errors.max(), 2),
        "floor": 1,
        "errors": [round(error, 4) for error in errors.tolist()],
    }


def coverage(method: str, eta: float, num_positions: int = 5) -> dict[str, object]:
    inside = np.zeros(num_positions - 1)
    for seed in range(REPLICATIONS):
        made, features = simulated(
            method,
            eta=eta,
            num_sessions=SESSIONS_OF_COVERAGE,
            num_queries=4,
            num_positions=num_positions,
            seed=seed + 1,
        )
        low, high = estimated(method, made, features, RESAMPLES_OF_COVERAGE, seed).intervals[1:].T
        inside += (low <= made.propensities[1:]) & (made.propensities[1:] <= high)
    shares = inside / REPLICATIONS
    return {
        "name": f"{method}-coverage-eta-{eta:g}",
        "mean": round(float(shares.mean()), 4),
        "by_rank": shares.round(4).tolist(),
        "standard_error": round(float(np.sqrt(0.95 * 0.05 / REPLICATIONS)), 4),
    }


if __name__ == "__main__":
    methods = [*POSITION_BIAS_METHODS, "em+features"]
    if sys.argv[1:2] == ["coverage"]:
        for name in sys.argv[2:] or methods:
            print(json.dumps(coverage(name, 1.0)), flush=True)
    else:
        for name in methods:
            for num_positions in (5, 10):
                for eta in ETAS:
                    print(json.dumps(recovery(name, eta, num_positions)), flush=True)
