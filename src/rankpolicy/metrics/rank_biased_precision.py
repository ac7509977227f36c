"""Rank-biased precision."""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.metrics.ranked import ranked, skip_empty
from rankpolicy.types import Conventions, RankPolicyError


def rbp(
    rankings: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
    persistence: float = 0.8,
) -> Tensor:
    """Rank-biased precision of each ranking (Moffat & Zobel 2008).

    RBP@c = (1 - persistence) sum over ranks r <= c that hold a relevant item of persistence^(r - 1). A query without
    relevant items has 0 whatever ``empty`` says, unless it is skipped.

    >>> from rankpolicy.metrics import all_items
    >>> from torch import tensor
    >>> rbp(tensor([[2, 0, 1]]), tensor([[0.0, 1.0, 3.0]]), all_items(1, 3))  # 0.2 (1 + 0.8^2)
    tensor([0.3280])
    """
    given = ranked(rankings, labels, mask, cutoff=cutoff)
    relevant = given.relevant(conventions)
    weights = persistence_weights(given.rankings.shape[-1], persistence, like=given.labels)
    return skip_empty((given.placed(relevant) * weights).sum(-1), relevant.sum(-1) > 0, conventions)


def persistence_weights(num_positions: int, persistence: float, *, like: Tensor) -> Tensor:
    """(1 - persistence) persistence^(r - 1) for ranks r = 1, 2, ... (position,)."""
    if not 0 <= persistence < 1:
        raise RankPolicyError(
            f"persistence must be at least 0 and below 1; got {persistence:g}. The usual values are 0.5, 0.8 and 0.95."
        )
    return (1 - persistence) * persistence ** torch.arange(num_positions, dtype=like.dtype, device=like.device)
