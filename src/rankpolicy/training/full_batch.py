"""Deterministic training of small models on all queries at once, for objectives whose gradient is exact."""

from __future__ import annotations

import torch
from torch import nn

from rankpolicy.data.batches import Batch
from rankpolicy.objectives.value import Objective
from rankpolicy.types import RankPolicyError


def fit_full_batch(
    network: nn.Module, batch: Batch, objective: Objective, *, max_iterations: int = 200, weight_decay: float = 0.0
) -> list[float]:
    """Maximise the objective's report minus weight_decay / 2 times the sum of squared weights, by L-BFGS with a strong Wolfe line search.

    Trains in place and returns the report after each evaluation. No step is random, so that a curve over many strengths is smooth.
    """
    values: list[float] = []
    optimizer = torch.optim.LBFGS(
        network.parameters(),
        max_iter=max_iterations,
        tolerance_grad=1e-9,
        tolerance_change=1e-12,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def closure() -> float:
        optimizer.zero_grad()
        value = objective(batch.padding.pad(network(batch.features)), batch)
        decay = weight_decay / 2 * torch.stack([weights.square().sum() for weights in network.parameters()]).sum()
        (value.loss + decay).backward()
        values.append(float(value.report))
        return float(decay.detach()) - values[-1]

    optimizer.step(closure)
    if not all(map(torch.isfinite, map(torch.tensor, values))):
        raise RankPolicyError(
            "training stopped: the objective is not finite. Scale the features (scaling='standardize')."
        )
    return values
