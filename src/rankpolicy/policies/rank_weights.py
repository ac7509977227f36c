"""Rank weights: how much a rank counts for the exposure of the item there."""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.metrics.ranked import discounts
from rankpolicy.types import RankPolicyError


def full_rank_weights(rank_weights: Tensor | None, *, like: Tensor, cutoff: int | None = None) -> Tensor:
    """One float64 weight per position of a policy's arrays ``like`` (query, item): 1 / log2(1 + rank) unless given, 0 past the cutoff.

    >>> full_rank_weights(None, like=torch.zeros(1, 4), cutoff=2)
    tensor([1.0000, 0.6309, 0.0000, 0.0000], dtype=torch.float64)
    >>> full_rank_weights(torch.tensor([1.0]), like=torch.zeros(1, 2))
    tensor([1., 0.], dtype=torch.float64)
    """
    num_positions = like.shape[-1]
    if rank_weights is None:
        weights = discounts(num_positions, like=torch.empty(0, dtype=torch.float64, device=like.device))
    elif rank_weights.ndim != 1:
        raise RankPolicyError(f"rank_weights must be a vector (position,); got shape {tuple(rank_weights.shape)}.")
    else:
        weights = rank_weights.to(device=like.device, dtype=torch.float64)[:num_positions]
    weights = torch.nn.functional.pad(weights, (0, num_positions - len(weights)))
    if cutoff is not None:
        weights = weights.clone()
        weights[cutoff:] = 0
    return weights
