"""All rankings of a short list, with their probabilities: what samplers and estimators are tested against."""

from __future__ import annotations

from itertools import permutations

import torch
from torch import Tensor

from rankpolicy.gradients import log_prob_gradient
from rankpolicy.policies import PlackettLuce


def all_rankings(num_items: int) -> Tensor:
    """(ranking, 1, position)"""
    return torch.tensor(list(permutations(range(num_items))))[:, None, :]


def enumerated_gradient(scores: Tensor, labels: Tensor, reward) -> Tensor:
    """sum over rankings of P * R * dlog P/dscores, for one query (1, item)."""
    mask = torch.ones_like(scores, dtype=torch.bool)
    rankings = all_rankings(scores.shape[-1])
    probabilities = PlackettLuce(scores, mask).log_prob(rankings).exp()
    rewards = reward(rankings, labels, mask)
    return ((probabilities * rewards)[..., None] * log_prob_gradient(scores, mask, rankings)).sum(0)
