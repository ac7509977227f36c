"""Click models, simulated bandits and the affinity policy on a CUDA device, for `python -m benchmarks.gpu`.

Beside each time stands that of the CPU kernels on all cores of the machine, or of the torch path, and their ratio.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankpolicy.clicks import ClickLog, fit_click_model
from rankpolicy.metrics import parse_metric
from rankpolicy.simulation import dcm_user, simulate, stationary

NUM_SESSIONS, NUM_POSITIONS, ITERATIONS = 600_000, 10, 20
NUM_RUNS, NUM_STEPS, CPU_RUNS = 4096, 5000, 64
BANDITS = ("dcm-kl-ucb", "ranked-kl-ucb", "dcm-ts")
NUM_QUERIES, NUM_SAMPLES = 64, 32
Captured = Callable[[Callable[[], object]], Callable[[], None]]
Microseconds = Callable[..., float]


def click_log(
    num_sessions: int, *, num_queries: int = 20_000, num_items: int = 30, lists_per_query: int = 20
) -> ClickLog:
    """A log with popular and rare queries, a few lists for each, clicked by position-based users."""
    generator = np.random.default_rng(0)
    shape = (num_queries, lists_per_query, num_items)
    lists = generator.random(shape, np.float32).argsort(-1)[..., :NUM_POSITIONS].astype(np.int32)
    popularity = 1 / np.arange(1, num_queries + 1)
    queries = generator.choice(num_queries, num_sessions, p=popularity / popularity.sum()).astype(np.int32)
    items = lists[queries, generator.integers(0, lists_per_query, num_sessions)]
    attraction = generator.beta(1, 3, (num_queries, num_items)).astype(np.float32)
    chances = attraction[queries[:, None], items] / np.sqrt(np.arange(1, NUM_POSITIONS + 1, dtype=np.float32))
    return ClickLog(
        query_names=tuple(map(str, range(num_queries))),
        item_names=tuple(map(str, range(num_items))),
        queries=queries,
        items=items,
        clicks=(generator.random(items.shape, np.float32) < chances).astype(np.int8),
        counts=np.ones(num_sessions, np.int64),
    )


def timed_fit(name: str, log: ClickLog, device: str) -> tuple[float, float, Any]:
    """Seconds of a whole fit, milliseconds of one iteration, and the model."""
    moments: list[float] = []
    start = time.perf_counter()
    model = fit_click_model(
        name,
        log,
        iterations=ITERATIONS,
        tolerance=0.0,
        device=device,
        report_iteration=lambda *_: moments.append(time.perf_counter()),
    )
    return time.perf_counter() - start, 1000 * float(np.median(np.diff(moments))), model


def click_models(num_sessions: int = NUM_SESSIONS) -> Iterator[dict[str, Any]]:
    """Whole fits of three click models, and one iteration of EM."""
    small, log = click_log(2000, num_queries=50), click_log(num_sessions)
    for name in ("pbm", "ubm", "dbn"):
        for device in ("cpu", "cuda"):
            timed_fit(name, small, device)
        on_cpu, iteration_on_cpu, expected = timed_fit(name, log, "cpu")
        on_cuda, iteration, found = timed_fit(name, log, "cuda")
        gap = max(np.abs(found.parameters[own] - values).max() for own, values in expected.parameters.items())
        yield {
            "name": f"EM of {name}, {num_sessions:,} sessions x {NUM_POSITIONS}, {ITERATIONS} iterations",
            "s": round(on_cuda, 3),
            "cpu_s": round(on_cpu, 3),
            "ratio": round(on_cpu / on_cuda, 1),
            "iteration_ms": round(iteration, 3),
            "cpu_iteration_ms": round(iteration_on_cpu, 3),
            "iteration_ratio": round(iteration_on_cpu / iteration, 1),
            "cores": os.cpu_count(),
            "largest_gap": float(f"{gap:.1e}"),
        }


def bandits(num_runs: int = NUM_RUNS, names: tuple[str, ...] = BANDITS) -> Iterator[dict[str, Any]]:
    """Steps per second of all runs together: 16 items, lists of 4, users of the DCM paper."""
    attraction = np.where(np.arange(16) < 4, 0.2, 0.05)
    problem = stationary(dcm_user(attraction, [0.8, 0.6, 0.4, 0.2]), 4)

    def measured(name: str, runs: int, device: str) -> tuple[float, float, float]:
        simulate([name], problem, num_steps=2, num_runs=2, device=device)
        start = time.perf_counter()
        found = simulate([name], problem, num_steps=NUM_STEPS, num_runs=runs, device=device)
        seconds = time.perf_counter() - start
        return seconds, found.mean(name)[-1], found.standard_error(name)[-1]

    for name in names:
        on_cuda, regret, error = measured(name, num_runs, "cuda")
        on_cpu, cpu_regret, cpu_error = measured(name, CPU_RUNS, "cpu")
        rate, cpu_rate = num_runs * NUM_STEPS / on_cuda, CPU_RUNS * NUM_STEPS / on_cpu
        yield {
            "name": f"{name}, {num_runs} runs of {NUM_STEPS} steps",
            "s": round(on_cuda, 3),
            "steps_per_s": float(f"{rate:.3g}"),
            "cpu_steps_per_s": float(f"{cpu_rate:.3g}"),
            "ratio": round(rate / cpu_rate, 1),
            "cores": os.cpu_count(),
            "regret": round(regret, 2),
            "cpu_regret": round(cpu_regret, 2),
            "gap_in_standard_errors": round((regret - cpu_regret) / float(np.hypot(error, cpu_error)), 1),
        }


def affinity(num_items: int, captured: Captured, microseconds: Microseconds) -> dict[str, Any]:
    """REINFORCE of the affinity policy: the kernel in a CUDA graph, the whole estimator, and the torch path."""
    from rankpolicy.gradients.affinity_reinforce import affinity_reinforce
    from rankpolicy.gradients.reinforce_reference import affinity_reinforce_of_rankings
    from rankpolicy.policies import Affinity

    generator = torch.Generator().manual_seed(num_items)
    scores = torch.randn(NUM_QUERIES, num_items, generator=generator).cuda()
    labels = torch.randint(0, 5, scores.shape, generator=generator).float().cuda()
    mask, reward = torch.ones_like(scores, dtype=torch.bool), parse_metric("mean(ap@20, ndcg@10)")

    def ours() -> Tensor:
        return affinity_reinforce(scores, labels, mask, reward=reward, num_samples=NUM_SAMPLES).gradient

    def in_torch() -> Tensor:
        policy = Affinity(scores, mask, 0.1)
        rankings = policy.sample(NUM_SAMPLES, cutoff=reward.cutoff)
        return affinity_reinforce_of_rankings(policy, labels, rankings=rankings, reward=reward).gradient

    eager, torch_time = microseconds(ours), microseconds(in_torch, calls=3, repeats=3)
    return {
        "name": f"affinity, {NUM_QUERIES} x {num_items}, {NUM_SAMPLES} samples, {reward.name}",
        "us": round(microseconds(captured(ours)), 1),
        "torch_us": round(torch_time, 1),
        "ratio": round(torch_time / eager, 1),
        "eager_us": round(eager, 1),
    }


def rows(captured: Captured, microseconds: Microseconds) -> Iterator[dict[str, Any]]:
    """All measurements."""
    yield from click_models()
    yield from bandits()
    for num_items in (24, 120, 1000):
        yield affinity(num_items, captured, microseconds)
