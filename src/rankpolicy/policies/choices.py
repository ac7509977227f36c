"""Choices one by one: at each position an item among those left, by weight or, with probability ε, by chance."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Choices(NamedTuple):
    """The choices that rankings hold, each (..., query, position)."""

    log_prob: Tensor  # log probability of the choice
    log_by_weight: Tensor  # log probability of making it by weight
    log_remaining: Tensor  # log of the summed weights of the items not placed before
    is_item: Tensor  # whether it is a real item


def sequential_choices(log_weights: Tensor, mask: Tensor, rankings: Tensor, *, epsilon: float | Tensor) -> Choices:
    """The choices of rankings (..., query, position) for log weights (query, item) and a share ``epsilon`` of chance, () or (query,)."""
    chosen, is_item = ranked_log_weights(log_weights, mask, rankings)
    log_remaining = log_remaining_weights(log_weights, mask, rankings)
    share = torch.as_tensor(epsilon, dtype=log_weights.dtype, device=log_weights.device).reshape(-1, 1)
    num_left = mask.sum(-1, keepdim=True) - torch.arange(rankings.shape[-1], device=rankings.device)
    by_weight = torch.log1p(-share) + chosen - log_remaining
    by_chance = share.log() - num_left.clamp(min=1).to(log_weights.dtype).log()
    return Choices(torch.logaddexp(by_chance, by_weight), by_weight, log_remaining, is_item)


def ranked_log_weights(log_weights: Tensor, mask: Tensor, rankings: Tensor) -> tuple[Tensor, Tensor]:
    """Log weight of the item at each position, and whether it is a real item: both (..., query, position)."""
    shape = (*rankings.shape[:-1], log_weights.shape[-1])
    return _filled(log_weights, mask).expand(shape).gather(-1, rankings), mask.expand(shape).gather(-1, rankings)


def log_remaining_weights(log_weights: Tensor, mask: Tensor, rankings: Tensor) -> Tensor:
    """log Z_p (..., query, position): log of the summed weights of all items not placed before position p."""
    placed, _ = ranked_log_weights(log_weights, mask, rankings)
    suffix = placed.flip(-1).logcumsumexp(-1).flip(-1)
    if rankings.shape[-1] == log_weights.shape[-1]:
        return suffix
    filled = _filled(log_weights, mask).expand(*rankings.shape[:-1], log_weights.shape[-1])
    unplaced = filled.scatter(-1, rankings, torch.finfo(log_weights.dtype).min / 4).logsumexp(-1, keepdim=True)
    return torch.logaddexp(suffix, unplaced)


def summed_shares(log_weights: Tensor, rankings: Tensor, log_remaining: Tensor, amounts: Tensor) -> Tensor:
    """Σ_{p <= rank(i)} amounts_p w_i / Z_p (..., query, item); an item that was not placed takes part in every sum."""
    shape = (*rankings.shape[:-1], log_weights.shape[-1])
    total = torch.zeros(shape, dtype=log_weights.dtype, device=log_weights.device)
    # In log space: an item's share w_i / Z_p is at most 1, but 1 / Z_p alone may overflow.
    for sign in (1.0, -1.0):
        counts = sign * amounts > 0
        log_amounts = torch.where(counts, sign * amounts, 1.0).log()
        nothing = torch.finfo(log_weights.dtype).min / 4
        log_sums = (log_amounts - log_remaining).masked_fill(~counts, nothing).logcumsumexp(-1)
        up_to_rank = log_sums[..., -1:].expand(shape).scatter(-1, rankings, log_sums)
        total += sign * (log_weights + up_to_rank).exp()
    return total


def add_gumbel_noise(log_weights: Tensor, *, num_samples: int, generator: torch.Generator | None) -> Tensor:
    """Log weights with standard Gumbel noise (sample, query, item): sorted, they are draws by weight."""
    # In float64: a float32 exponential can be 0, and its logarithm then ties items at infinity.
    shape = (num_samples, *log_weights.shape)
    exponential = torch.empty(shape, dtype=torch.float64, device=log_weights.device).exponential_(generator=generator)
    return log_weights.detach().double() - exponential.log()


def _filled(log_weights: Tensor, mask: Tensor) -> Tensor:
    # Finite, not -inf: the backward pass of logcumsumexp turns -inf into NaN.
    return log_weights.masked_fill(~mask, torch.finfo(log_weights.dtype).min / 4)
