"""Average precision."""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.metrics.ranked import divide_by_ideal, fill_empty, ranked
from rankpolicy.types import Conventions


def ap(
    rankings: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Tensor:
    """Average precision of each ranking (Buckley & Voorhees 2000); its mean over queries is MAP.

    AP@c = (1/R) sum over ranks r <= c that hold a relevant item of (relevant items up to r) / r. R counts all relevant
    items of the query, also those below the cutoff, as trec_eval's map and map_cut do.

    >>> from rankpolicy.metrics import all_items
    >>> from torch import tensor
    >>> ap(tensor([[2, 0, 1]]), tensor([[0.0, 1.0, 3.0]]), all_items(1, 3))  # (1/1 + 2/3) / 2
    tensor([0.8333])
    """
    given = ranked(rankings, labels, mask, cutoff=cutoff)
    relevant = given.relevant(conventions)
    num_relevant = relevant.sum(-1)
    hits = given.placed(relevant)
    ranks = torch.arange(1, hits.shape[-1] + 1, dtype=hits.dtype, device=hits.device)
    values = (hits * hits.cumsum(-1) / ranks).sum(-1)
    return fill_empty(divide_by_ideal(values, num_relevant), num_relevant > 0, conventions)
