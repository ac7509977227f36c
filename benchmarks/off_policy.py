"""Off-policy estimates of a Plackett-Luce policy: the program one would first write, a plain Python loop over rounds and positions.

The loop has its log and exp(scores) as lists made beforehand; both sides compute the policy's probabilities of every list, the importance
weights, the value and its standard error. They agree to 1e-10.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.timing import speedup, use_two_threads
from rankpolicy.off_policy.estimates import estimate_policy_value
from rankpolicy.off_policy.log import OffPolicyLog
from rankpolicy.policies import PlackettLuce

NUM_ROUNDS, NUM_POSITIONS, NUM_ITEMS, NUM_CONTEXTS = 100_000, 10, 20, 50
LARGEST_ERROR = 1e-10


def made_log(generator: np.random.Generator) -> OffPolicyLog:
    """Lists in uniformly random order; later positions are clicked less."""
    items = generator.permuted(np.tile(np.arange(NUM_ITEMS), (NUM_ROUNDS, 1)), axis=1)[:, :NUM_POSITIONS]
    return OffPolicyLog(
        items=items,
        rewards=generator.random(items.shape) < 0.5 / (1 + np.arange(NUM_POSITIONS)),
        contexts=generator.integers(0, NUM_CONTEXTS, NUM_ROUNDS),
        propensities=np.tile(1 / (NUM_ITEMS - np.arange(NUM_POSITIONS)), (NUM_ROUNDS, 1)),
    )


def prefix_loop(rounds: list[Any], weights: list[list[float]], *, whole_lists: bool) -> tuple[float, float]:
    """Value and standard error by tops of lists, or by whole lists."""
    values = []
    for context, items, rewards, propensities in rounds:
        own = weights[context]
        left = dict(enumerate(own))
        value, ratio = 0.0, 1.0
        for item, reward, propensity in zip(items, rewards, propensities, strict=True):
            ratio *= own[item] / sum(left.values()) / propensity
            del left[item]
            value += reward if whole_lists else ratio * reward
        values.append(ratio * value if whole_lists else value)
    return mean_and_error(values)


def mean_and_error(values: list[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / (len(values) * (len(values) - 1)))


def measure() -> list[dict[str, object]]:
    use_two_threads()
    generator = np.random.default_rng(0)
    log = made_log(generator)
    scores = torch.from_numpy(generator.normal(0, 0.5, (NUM_CONTEXTS, NUM_ITEMS)))
    policy = PlackettLuce(scores, torch.ones_like(scores, dtype=torch.bool))
    weights = scores.exp().tolist()
    columns = log.contexts.tolist(), log.items.tolist(), log.rewards.tolist()
    by_step = list(zip(*columns, log.propensities.tolist(), strict=True))
    loops: dict[str, Callable[[], tuple[float, float]]] = {
        "ips": lambda: prefix_loop(by_step, weights, whole_lists=True),
        "rips": lambda: prefix_loop(by_step, weights, whole_lists=False),
    }
    results: list[dict[str, object]] = []
    for name, loop in loops.items():
        estimate = estimate_policy_value(log, policy, estimator=name)
        value, error = loop()
        assert abs(estimate.value - value) <= LARGEST_ERROR
        assert abs(estimate.standard_error - error) <= LARGEST_ERROR
        ratio = speedup(loop, lambda name=name: estimate_policy_value(log, policy, estimator=name), repeats=5)
        results.append(
            {
                "name": f"off-policy-{name}",
                "ratio": round(ratio),
                "floor": 100,
                "what": f"plain Python loop / ours, {NUM_ROUNDS} rounds x {NUM_POSITIONS} positions, policy's probabilities included",
            }
        )
    return results


if __name__ == "__main__":
    for result in measure():
        print(json.dumps(result))
