"""Variance of sampled gradients of NDCG at 10 samples a query: PL-Rank-3 and leave-one-out REINFORCE against gumbel."""

from __future__ import annotations

import json

import torch
from torch import Tensor

from benchmarks.timing import use_two_threads
from rankpolicy.gradients import gumbel, pl_rank, reinforce
from rankpolicy.gradients.estimate import Estimator
from rankpolicy.metrics import parse_metric

NUM_SAMPLES, NUM_PROBLEMS, NUM_REPEATS = 10, 20, 500
SHARES_OF_LABELS = (0.6, 0.2, 0.1, 0.06, 0.04)  # labels 0 to 4, as in web search: most items are irrelevant


def problems(num_items: int) -> tuple[Tensor, Tensor]:
    """Scores, standard normal, and labels of some queries."""
    generator = torch.Generator().manual_seed(num_items)
    scores = torch.randn(NUM_PROBLEMS, num_items, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(
        torch.tensor(SHARES_OF_LABELS), scores.numel(), replacement=True, generator=generator
    ).reshape(scores.shape)
    return scores, labels.double()


def variance(estimator: Estimator, num_items: int, metric: str) -> float:
    """Variance of the estimate, summed over items, mean over problems."""
    scores, labels = (part.repeat(NUM_REPEATS, 1) for part in problems(num_items))
    estimate = estimator(
        scores,
        labels,
        torch.ones_like(scores, dtype=torch.bool),
        reward=parse_metric(metric),
        num_samples=NUM_SAMPLES,
        generator=torch.Generator().manual_seed(1),
    )
    return estimate.gradient.reshape(NUM_REPEATS, NUM_PROBLEMS, num_items).var(0).sum(-1).mean().item()


def measure() -> list[dict[str, object]]:
    use_two_threads()
    results: list[dict[str, object]] = []
    for num_items, metric, floors in (
        (24, "ndcg@10", {pl_rank: 30, reinforce: 30}),
        (120, "ndcg@10", {pl_rank: 30, reinforce: 30}),
        (24, "ndcg", {pl_rank: 500, reinforce: 100}),
    ):
        ours = variance(gumbel, num_items, metric)
        for peer, floor in floors.items():
            name = peer.__name__.replace("_", "-")
            results.append(
                {
                    "name": f"gradient-variance-{name}-{metric.replace('@', '-')}-of-{num_items}",
                    "ratio": round(variance(peer, num_items, metric) / ours, 1),
                    "floor": floor,
                    "what": f"variance of {name} / of gumbel, {num_items} items, {metric}, {NUM_SAMPLES} samples",
                }
            )
    return results


if __name__ == "__main__":
    for result in measure():
        print(json.dumps(result))
