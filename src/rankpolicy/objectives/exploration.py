"""How the share of random choices, epsilon, changes while BanditRank is trained."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

DECAY = 0.9  # factor of epsilon per epoch

Exploration = Callable[
    [float, int, Tensor, Tensor], float | Tensor
]  # epsilon, epochs done, scores, mask -> epsilon now


def constant(epsilon: float, epoch: int, scores: Tensor, mask: Tensor) -> float:
    """epsilon in every epoch, as in the paper."""
    return epsilon


def decaying(epsilon: float, epoch: int, scores: Tensor, mask: Tensor) -> float:
    """epsilon * 0.9^epoch."""
    return epsilon * DECAY**epoch


def entropy_driven(epsilon: float, epoch: int, scores: Tensor, mask: Tensor) -> Tensor:
    """epsilon^(H / log n) for each query (query,), H the entropy of the first choice among its n items by affinity.

    This is epsilon if all items are equally likely, and grows towards 1 as the choice narrows down to few items.

    >>> entropy_driven(0.1, 0, torch.tensor([[0.0, 0.0], [50.0, -50.0]]), torch.ones(2, 2, dtype=torch.bool))
    tensor([0.1000, 1.0000])
    """
    # Finite, not -inf: 0 * -inf would be NaN.
    log_choice = logsigmoid(scores.detach()).masked_fill(~mask, -1e30).log_softmax(-1)
    entropy = -(log_choice.exp() * log_choice).sum(-1)
    highest = mask.sum(-1).clamp(min=2).to(entropy.dtype).log()
    return torch.pow(epsilon, (entropy / highest).clamp(0.0, 1.0))


EXPLORATIONS: dict[str, Exploration] = {
    "constant": constant,
    "decaying": decaying,
    "entropy": entropy_driven,
}
