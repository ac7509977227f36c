"""Average rank of the relevant items."""

from __future__ import annotations

from torch import Tensor

from rankpolicy.metrics.ranked import divide_by_ideal, fill_empty, ranked, ranks_of
from rankpolicy.types import Conventions


def avg_rank(
    rankings: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Tensor:
    """Average rank of the relevant items of each query (Joachims 2002); lower is better, so a reward needs a minus.

    avg_rank@c = (1/R) sum over relevant items of min(rank, c + 1). Relevant items that a prefix of m < c positions
    leaves out rank m + 1. A query without relevant items has the value of ``empty``, here as everywhere.

    >>> from rankpolicy.metrics import all_items
    >>> from torch import tensor
    >>> avg_rank(tensor([[2, 0, 1]]), tensor([[0.0, 1.0, 3.0]]), all_items(1, 3))  # (1 + 3) / 2
    tensor([2.])
    """
    given = ranked(rankings, labels, mask, cutoff=cutoff)
    relevant = given.relevant(conventions)
    num_relevant = relevant.sum(-1)
    ranks = ranks_of(given.rankings, labels.shape[-1])
    return fill_empty(divide_by_ideal((ranks * relevant).sum(-1), num_relevant), num_relevant > 0, conventions)
