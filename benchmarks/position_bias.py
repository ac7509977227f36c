"""Known propensities from simulated sessions, by every method: 0.03 over the largest relative error, which must be 1 or more.

    python -m benchmarks.position_bias                     a million sessions, eta 0.5, 1 and 2
    python -m benchmarks.position_bias coverage [method]   how often 95 % intervals hold the truth, over 500 logs

A hundred queries of as many items as positions; relevance = sigmoid(0.3 + 0.6 x_1 - 0.4 x_2). Randomised methods see random lists, swaps a
log of swaps, the others eight fixed rankers. Propensities are 1 / rank^eta. With ten positions and eta = 2 the last rank has 4,000 of a
million clicks: without features, no unbiased method has a standard error under 1.8 % there (Cramér and Rao; 1.3 % with random lists), and
those that use only some of the clicks have more, pivot 4.3 %. So each error is printed in its method's standard errors too, and with it
the least share of logs that chance would leave within 3 % at all ranks: with errors nearly normal, the product over ranks (Šidák 1967).
"""

from __future__ import annotations

import json
import math
import sys

import numpy as np

from rankpolicy.clicks import POSITION_BIAS_METHODS, BiasedLog, PositionBias, estimate_position_bias, make_biased_log

NUM_SESSIONS, NUM_QUERIES = 1_000_000, 100
ETAS = (0.5, 1.0, 2.0)
LARGEST_ERROR = 0.03
SHORTER = 10  # standard errors are bootstrapped on logs so much shorter, where they are larger by its root
REPLICATIONS, SESSIONS_OF_COVERAGE, NUM_RESAMPLES = 500, 4000, 200  # 500: a standard error of coverage under 1 %


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
    errors = found.propensities / made.propensities - 1
    typical = standard_errors(method, eta, num_positions)
    within = [math.erf(LARGEST_ERROR / (one * math.sqrt(2))) for one in typical[1:]]
    return {
        "name": f"{method}-eta-{eta:g}-positions-{num_positions}",
        "ratio": round(LARGEST_ERROR / abs(errors).max(), 2),
        "floor": 1,
        "errors": errors.round(4).tolist(),
        "in_standard_errors": [0.0, *(errors[1:] / typical[1:]).round(1).tolist()],
        "least_share_of_logs_within_3_percent": round(math.prod(within), 2),
    }


def standard_errors(method: str, eta: float, num_positions: int) -> np.ndarray:
    """Of the relative errors that chance makes in logs of NUM_SESSIONS (position,): a 95 % interval is 3.92 of them wide."""
    made, features = simulated(
        method,
        eta=eta,
        num_sessions=NUM_SESSIONS // SHORTER,
        num_queries=NUM_QUERIES,
        num_positions=num_positions,
        seed=1,
    )
    low, high = estimated(method, made, features, NUM_RESAMPLES, 0).intervals.T
    return (high - low) / 3.92 / made.propensities / math.sqrt(SHORTER)


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
        low, high = estimated(method, made, features, NUM_RESAMPLES, seed).intervals[1:].T
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
