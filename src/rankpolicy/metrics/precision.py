"""Precision."""

from __future__ import annotations

from torch import Tensor

from rankpolicy.metrics.ranked import divide_by_ideal, fill_empty, ranked
from rankpolicy.types import Conventions


def p(
    rankings: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Tensor:
    """Precision of each ranking: the share of relevant items among the first c.

    P@c = (relevant items at ranks <= c) / c, also where the query has fewer than c items (trec_eval). Without a cutoff
    the divisor is the number of items of the query.

    >>> from rankpolicy.metrics import all_items
    >>> from torch import tensor
    >>> p(tensor([[2, 0, 1]]), tensor([[0.0, 1.0, 3.0]]), all_items(1, 3), cutoff=2)
    tensor([0.5000])
    """
    given = ranked(rankings, labels, mask, cutoff=cutoff)
    relevant = given.relevant(conventions)
    hits = given.placed(relevant).sum(-1)
    values = divide_by_ideal(hits, given.mask.sum(-1).to(hits.dtype)) if cutoff is None else hits / cutoff
    return fill_empty(values, relevant.sum(-1) > 0, conventions)
