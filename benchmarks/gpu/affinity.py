"""REINFORCE of the affinity policy on a CUDA device, for `python -m benchmarks.gpu`: the kernel against the torch path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from rankpolicy.metrics import parse_metric

NUM_QUERIES, NUM_SAMPLES = 64, 32
Captured = Callable[[Callable[[], object]], Callable[[], None]]
Microseconds = Callable[..., float]


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
    """Lists of three lengths."""
    for num_items in (24, 120, 1000):
        yield affinity(num_items, captured, microseconds)
