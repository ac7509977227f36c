"""Exact gradient, cutoff 10, against NumPy with the same recursion and PL-Rank-3 run to 1 % error (64 queries x 120 items), and against
REINFORCE with 30 samples (epochs of PGRank on MQ2007, or on queries of its shape where RANKPOLICY_DATA is not set)."""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

import numba
import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.timing import speedup
from rankpolicy import PGRank, make_web_search, read_letor
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.gradients import exact, pl_rank
from rankpolicy.kernels.plackett_luce.race import race
from rankpolicy.metrics import parse_metric
from rankpolicy.policies.race import COARSE

NUM_QUERIES, NUM_ITEMS, CUTOFF = 64, 120, 10
RELATIVE_ERROR = 0.01
SAMPLES_TIMED = 1000  # time grows in proportion to samples, so more of them need not be run
NODES_AT_A_TIME = 24
NUM_SAMPLES, EPOCHS, REPEATS = 30, 10, 5

Floats = NDArray[np.float64]


def numpy_gradients(scores: Floats, weights: Floats, coefficients: Floats) -> Floats:
    return np.stack([numpy_gradient(s, weights, c) for s, c in zip(scores, coefficients, strict=True)])


def numpy_gradient(scores: Floats, weights: Floats, coefficients: Floats) -> Floats:
    """The recursion of kernels/race.py for one query, vectorised over nodes and counts; stops where the kernel stops."""
    scores = scores - scores.max()
    rates = np.exp(scores)
    step = COARSE.step
    first = math.floor((-math.log(rates.sum()) - COARSE.before) / step)
    last = math.ceil((COARSE.after - scores.min()) / step)
    gradient = step * math.exp(first * step) / math.expm1(step) * weights[0] * rates * coefficients
    for start in range(first, last + 1, NODES_AT_A_TIME):
        nodes = step * np.arange(start, min(start + NODES_AT_A_TIME, last + 1))
        reached = _add_nodes(gradient, np.exp(nodes), rates, weights, coefficients)
        if reached < math.exp(-2 * COARSE.before):
            break
    return gradient


def _add_nodes(gradient: Floats, times: Floats, rates: Floats, weights: Floats, coefficients: Floats) -> float:
    num_items, cutoff = len(rates), len(weights)
    rates_t = rates[:, None] * times
    waiting = np.exp(-rates_t)
    arrived, density = 1 - waiting, rates_t * waiting
    weighted = coefficients[:, None] * COARSE.step * density
    forward, left_out = np.zeros((num_items + 1, cutoff, len(times))), np.zeros((num_items + 1, cutoff, len(times)))
    forward[0, 0] = 1
    for i in range(num_items):
        forward[i + 1] = waiting[i] * forward[i]
        forward[i + 1, 1:] += arrived[i] * forward[i, :-1]
        left_out[i + 1] = waiting[i] * left_out[i] + weighted[i] * forward[i]
        left_out[i + 1, 1:] += arrived[i] * left_out[i, :-1]
    after, after_left_out = np.zeros((cutoff + 1, len(times))), np.zeros((cutoff + 1, len(times)))
    after[:-1] = weights[:, None]
    for i in reversed(range(num_items)):
        steps, steps_left_out = np.diff(after, axis=0), np.diff(after_left_out, axis=0)
        slope = (forward[i] * steps_left_out + left_out[i] * steps).sum(0)
        total = (forward[i] * after[:-1]).sum(0)
        gradient[i] += (density[i] * slope + weighted[i] * total * (1 - rates_t[i])).sum()
        after_left_out[:-1] += arrived[i] * steps_left_out
        after_left_out += weighted[i] * after
        after[:-1] += arrived[i] * steps
    return float(forward[-1, :, -1].sum())


def mq2007() -> tuple[str, RankingDataset]:
    """A part of MQ2007, or queries of as many items, that have relevant ones: PG-Rank trains on no others."""
    folder = os.environ.get("RANKPOLICY_DATA")
    name, dataset = "as long as MQ2007's", make_web_search(300, random_state=0)
    if folder:
        name, dataset = "of MQ2007", read_letor(Path(folder) / "letor_mq2007" / "S1.txt.gz")
    return name, dataset.drop_queries_without_relevant_items(relevant_from=1e-9)[0]


def epoch_ratio() -> dict[str, object]:
    """The first epochs of PGRank's training, networks and all; there scores lie close, where sampling is cheapest."""
    name, dataset = mq2007()

    def seconds(settings: Mapping[str, object]) -> float:
        # Processor time: one thread each, and the machine may be busy.
        start = time.process_time()
        PGRank(epochs=EPOCHS, reward=f"ndcg@{CUTOFF}").set_params(**settings).fit(dataset, progress=False)
        return time.process_time() - start

    by_sampling, ours = {"estimator": "reinforce", "num_samples": NUM_SAMPLES}, {"estimator": "exact"}
    seconds(by_sampling), seconds(ours)
    ratio = statistics.median(seconds(by_sampling) / seconds(ours) for _ in range(REPEATS))
    return {
        "name": "exact-epoch-reinforce",
        "ratio": round(ratio, 2),
        "floor": 1,
        "what": f"PGRank with {NUM_SAMPLES} samples / exact, {EPOCHS} epochs of {dataset.num_queries} queries {name}",
    }


def measure() -> list[dict[str, object]]:
    # NumPy has one thread; so has ours, here.
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(NUM_QUERIES, NUM_ITEMS, generator=generator, dtype=torch.float64)
    shares = torch.tensor([0.6, 0.2, 0.1, 0.06, 0.04])
    labels = torch.multinomial(shares, scores.numel(), replacement=True, generator=generator)
    labels = labels.reshape(scores.shape).double()
    mask = torch.ones_like(scores, dtype=torch.bool)
    reward = parse_metric(f"ndcg@{CUTOFF}")
    (form,) = reward.additive_forms(labels, mask)
    weights, values = form.rank_weights.numpy(), form.item_values.numpy()

    def ours() -> Floats:
        return race(scores.numpy(), mask.numpy(), weights, values, quadrature=COARSE)[1]

    def in_numpy() -> Floats:
        return numpy_gradients(scores.numpy(), weights[:CUTOFF], values)

    np.testing.assert_allclose(ours(), in_numpy(), rtol=0, atol=1e-9)

    truth = exact(scores, labels, mask, reward=reward).gradient
    estimate = pl_rank(scores, labels, mask, reward=reward, num_samples=SAMPLES_TIMED, generator=generator).gradient
    squared_error = ((estimate - truth) ** 2).sum() / (truth**2).sum()
    num_samples = SAMPLES_TIMED * squared_error.item() / RELATIVE_ERROR**2
    sampled = speedup(
        lambda: pl_rank(scores, labels, mask, reward=reward, num_samples=SAMPLES_TIMED, generator=generator),
        lambda: exact(scores, labels, mask, reward=reward),
        calls=3,
    )
    return [
        {
            "name": "exact-gradient-numpy",
            "ratio": round(speedup(in_numpy, ours), 1),
            "floor": 30,
            "what": "NumPy, a query at a time / ours, one thread each",
        },
        {
            "name": "exact-gradient-pl-rank",
            "ratio": round(sampled * num_samples / SAMPLES_TIMED, 1),
            "floor": 1,
            "what": f"pl_rank with the {num_samples:.0f} samples of 1 % error (timed at {SAMPLES_TIMED}) / ours",
        },
        epoch_ratio(),
    ]


if __name__ == "__main__":
    for result in measure():
        print(json.dumps(result))
