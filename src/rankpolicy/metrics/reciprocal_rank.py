"""Reciprocal rank."""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.metrics.ranked import fill_empty, ranked
from rankpolicy.types import Conventions


def rr(
    rankings: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Tensor:
    """Reciprocal rank of the first relevant item of each ranking (Voorhees 1999); its mean over queries is MRR.

    RR@c = 1 / r for the first rank r <= c that holds a relevant item, 0 where none does.

    >>> from rankpolicy.metrics import all_items
    >>> from torch import tensor
    >>> rr(tensor([[0, 2, 1]]), tensor([[0.0, 1.0, 3.0]]), all_items(1, 3))
    tensor([0.5000])
    """
    given = ranked(rankings, labels, mask, cutoff=cutoff)
    relevant = given.relevant(conventions)
    hits = given.placed(relevant)
    ranks = torch.arange(1, hits.shape[-1] + 1, dtype=hits.dtype, device=hits.device)
    return fill_empty((hits / ranks).amax(-1), relevant.sum(-1) > 0, conventions)
