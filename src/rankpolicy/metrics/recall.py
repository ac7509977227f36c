"""Recall."""

from __future__ import annotations

from torch import Tensor

from rankpolicy.metrics.ranked import divide_by_ideal, fill_empty, ranked
from rankpolicy.types import Conventions


def recall(
    rankings: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Tensor:
    """Recall of each ranking: the share of the query's relevant items found among the first c.

    recall@c = (relevant items at ranks <= c) / (relevant items of the query).

    >>> from rankpolicy.metrics import all_items
    >>> from torch import tensor
    >>> recall(tensor([[2, 0, 1]]), tensor([[0.0, 1.0, 3.0]]), all_items(1, 3), cutoff=1)
    tensor([0.5000])
    """
    given = ranked(rankings, labels, mask, cutoff=cutoff)
    relevant = given.relevant(conventions)
    num_relevant = relevant.sum(-1)
    return fill_empty(divide_by_ideal(given.placed(relevant).sum(-1), num_relevant), num_relevant > 0, conventions)
